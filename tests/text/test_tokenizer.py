"""Encoding, decoding and the bytes of tokens, for both spellings of vocabularies."""

from __future__ import annotations

from pathlib import Path

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_samples import TEXTS, byte_level, sentencepiece

from phloem.runtime.errors import RequestError
from phloem.runtime.text import Tokenizer


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {
        "byte_level": byte_level(folder),
        "sentencepiece": sentencepiece(folder),
        "sentencepiece_bare": sentencepiece(folder, add_space_prefix=False),
    }


@pytest.fixture(params=["byte_level", "sentencepiece", "sentencepiece_bare"])
def tokenizer(request: pytest.FixtureRequest, tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    return tokenizers[request.param]


NAMES = st.sampled_from(["byte_level", "sentencepiece", "sentencepiece_bare"])
IDS = st.lists(st.integers(0, 710), max_size=60)


@given(text=TEXTS, name=NAMES)
def test_text_survives_encoding(text: str, name: str, tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers[name]
    ids = tokenizer.encode(text, add_special_tokens=False, parse_special=False)
    assert tokenizer.decode(ids) == text


@given(text=TEXTS, name=NAMES)
def test_untrusted_text_makes_no_special_tokens(
    text: str, name: str, tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers[name]
    ids = tokenizer.encode(text, add_special_tokens=False, parse_special=False)
    assert not tokenizer.special_ids & set(ids)


@given(ids=IDS)
def test_byte_level_decoding_agrees_with_the_tokenizers_library(
    ids: list[int], tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers["byte_level"]
    for skip in (True, False):
        expected = tokenizer._fast.decode(ids, skip_special_tokens=skip)
        assert tokenizer.decode(ids, skip_special_tokens=skip) == expected


@given(text=TEXTS, name=NAMES)
def test_decoding_of_text_agrees_with_the_tokenizers_library(
    text: str, name: str, tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers[name]
    ids = tokenizer.encode(text)
    for skip in (True, False):
        expected = tokenizer._fast.decode(ids, skip_special_tokens=skip)
        assert tokenizer.decode(ids, skip_special_tokens=skip) == expected


def test_special_tokens_in_text_are_parsed_unless_told_otherwise(
    tokenizers: dict[str, Tokenizer],
) -> None:
    tokenizer = tokenizers["byte_level"]
    assert tokenizer.encode("<|im_start|>hi<|im_end|>")[0] == 0
    assert tokenizer.encode("<|im_start|>hi<|im_end|>")[-1] == 1
    assert tokenizer.special_ids == {0, 1}
    assert tokenizer.eos_token_ids == (1,)  # recognised: the file names no end


def test_bos_is_added_where_the_vocabulary_wants_it(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["sentencepiece"]
    assert tokenizer.bos_token_id == 1
    assert tokenizer.encode("") == [1]
    assert tokenizer.encode("a")[0] == 1
    assert tokenizer.encode("a")[1:] == tokenizer.encode("a", add_special_tokens=False)


@pytest.mark.parametrize(
    ("more", "around"),
    [
        ({"add_bos_token": True}, (0, None)),
        ({"add_bos_token": False}, (None, None)),
        ({"eos_token_id": 1, "add_eos_token": True}, (None, 1)),
        ({"bos_token_id": 0, "split": "llama-bpe"}, (0, None)),
    ],
)
def test_the_file_says_what_stands_around_a_text(
    more: dict[str, object], around: tuple[int | None, int | None], tmp_path: Path
) -> None:
    tokenizer = byte_level(tmp_path, **more)  # type: ignore[arg-type]  # cases of several types
    inner = tokenizer.encode("hello", add_special_tokens=False)
    before, after = around
    expected = [*([] if before is None else [before]), *inner, *([] if after is None else [after])]
    assert tokenizer.encode("hello") == expected


def test_a_batch_is_encoded_like_its_texts(tokenizer: Tokenizer) -> None:
    texts = ["hello", "", "漢字 😀", "x" * 100]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("text", ["\ud800", "ab\udfffc"])
def test_lone_surrogates_are_refused(text: str, tokenizer: Tokenizer) -> None:
    with pytest.raises(RequestError, match="lone surrogate at character") as caught:
        tokenizer.encode(text)
    assert caught.value.param == "text"
    with pytest.raises(RequestError):
        tokenizer.encode_batch(["fine", text])
    with pytest.raises(RequestError):
        tokenizer.encode(text, parse_special=False)


def test_bytes_of_tokens_join_to_the_text(tokenizer: Tokenizer) -> None:
    text = "a 漢字, 😀\n\n  é\x00"
    ids = tokenizer.encode(text, add_special_tokens=False)
    joined = b"".join(tokenizer.token_bytes(i) for i in ids)
    assert joined == (b" " if tokenizer.drops_leading_space else b"") + text.encode()


def test_the_table_of_bytes_fits_the_model(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    table = tokenizer.token_bytes_table(size + 3)
    assert table[size:] == [b"", b"", b""]
    assert len(tokenizer.token_bytes_table(10)) == 10
    assert all(table[i] == b"" for i in tokenizer.special_ids)
    assert set(range(256)) <= {piece[0] for piece in table if len(piece) == 1}


@pytest.mark.parametrize("token_id", [-1, 10_000, 2**63])
def test_ids_outside_the_vocabulary_have_no_text(token_id: int, tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([token_id]) == "" == tokenizer.token_text(token_id)
    assert tokenizer.token_bytes(token_id) == b""


def test_tokens_are_shown_one_by_one(tokenizers: dict[str, Tokenizer]) -> None:
    byte_level = tokenizers["byte_level"]
    assert byte_level.token_text(0) == "<|im_start|>"
    assert byte_level.token_id("<|im_end|>") == 1 and byte_level.token_id("nonsense") is None
    partial = byte_level.encode("\U000e0001", add_special_tokens=False)[0]
    assert byte_level.token_text(partial) == "\ufffd"


def test_a_grammar_engine_reads_the_serialised_tokenizer(tokenizer: Tokenizer) -> None:
    engine = llguidance.LLTokenizer(tokenizer.to_json(), n_vocab=tokenizer.vocab_size)
    assert engine.vocab_size == tokenizer.vocab_size
    text = 'hello {"a": 12, "漢": "😀"}'
    ids = engine.tokenize_str(text)
    assert tokenizer.decode(ids).lstrip() == text


def test_long_runs_of_one_character_are_encoded(tokenizer: Tokenizer) -> None:
    for char in "a \n漢":
        text = char * 50_000
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
