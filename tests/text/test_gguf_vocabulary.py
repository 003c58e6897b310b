"""What GGUF metadata says about a tokenizer, and metadata that cannot be used."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from gguf_writing import write_vocabulary
from text_samples import byte_level, goldens, load

from phloem.runtime.errors import ModelError
from phloem.runtime.text import Tokenizer


def with_tokens(folder: Path, *tokens: tuple[str, int], **more: Any) -> Tokenizer:
    """The byte-level vocabulary with more tokens of given types at its end."""
    small = goldens()["byte_level"]
    texts, types = zip(*tokens, strict=True)
    vocabulary = {
        **small,
        "tokens": [*small["tokens"], *texts],
        "token_type": [*small["token_type"], *types],
    }
    return load(write_vocabulary(folder / "v.gguf", "gpt2", vocabulary, pre="qwen2", **more))


def test_named_ends_are_all_ends(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path, eos_token_id=5, eot_token_id=7, eom_token_id=5)
    assert tokenizer.eos_token_ids == (5, 7)


def test_an_unnamed_end_of_turn_is_recognised(tmp_path: Path) -> None:
    tokenizer = with_tokens(tmp_path, ("<|eot_id|>", 1), ("<end_of_turn>", 3), eos_token_id=4)
    assert tokenizer.eos_token_ids == (4, 1, 700, 701)
    assert {1, 700, 701} <= tokenizer.special_ids
    assert byte_level(tmp_path).eos_token_ids == (1,)


def test_ids_out_of_range_are_no_tokens(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path, bos_token_id=9999, padding_token_id=0xFFFFFFFF)
    assert tokenizer.bos_token_id is None


def test_user_defined_tokens_are_found_whole_but_are_not_special(tmp_path: Path) -> None:
    tokenizer = with_tokens(tmp_path, ("<think>", 4), ("naïve日", 4), ("<ctl>", 3))
    ids = tokenizer.encode("a<think>bnaïve日<ctl>", add_special_tokens=False, parse_special=False)
    assert 700 in ids and 701 in ids and 702 not in ids
    assert tokenizer.decode(ids) == "a<think>bnaïve日<ctl>"
    assert tokenizer.token_bytes(701) == "naïve日".encode() and tokenizer.token_bytes(702) == b""


def test_added_tokens_are_spelled_as_they_are(tmp_path: Path) -> None:
    # in the byte alphabet the letters would stand for the bytes 0xE9 and 0xFC
    assert with_tokens(tmp_path, ("éü", 4)).token_bytes(700) == "éü".encode()


def test_phi3_tokens_swallow_the_space_after_them(tmp_path: Path) -> None:
    small = goldens()["sentencepiece"]
    more = {
        "tokens": [*small["tokens"], "<|user|>", "<|endoftext|>"],
        "token_type": [*small["token_type"], 3, 3],
        "scores": [*small["scores"], 0.0, 0.0],
    }
    plain = load(write_vocabulary(tmp_path / "a.gguf", "llama", {**small, **more}))
    phi3 = load(
        write_vocabulary(tmp_path / "b.gguf", "llama", {**small, **more}, architecture="phi3")
    )
    for text, expected in (("<|user|>\n x", "<|user|>x"), ("<|endoftext|> x", "<|endoftext|> x")):
        ids = phi3.encode(text, add_special_tokens=False)
        bare = phi3.encode(expected, add_special_tokens=False)
        assert ids == bare
    assert plain.encode("<|user|>\n x") != plain.encode("<|user|>x")


def test_templates_by_name(tmp_path: Path) -> None:
    tokenizer = byte_level(
        tmp_path,
        **{
            "tokenizer.chat_template": "plain {{ bos_token }}{{ eos_token is defined }}",
            "tokenizer.chat_template.tool_use": "with {{ tools[0].name }}",
        },
    )
    assert tokenizer.chat_template == "plain {{ bos_token }}{{ eos_token is defined }}"
    assert tokenizer.apply_chat_template([]) == "plain <|im_start|>False"
    assert tokenizer.apply_chat_template([], tools=[{"name": "f"}]) == "with f"


def test_empty_tokens_have_a_name_of_their_own(tmp_path: Path) -> None:
    tokenizer = with_tokens(tmp_path, ("", 5))
    assert tokenizer.vocab_size == 701 and tokenizer.token_text(700) == "[EMPTY_700]"


def test_merges_may_be_listed_for_sentencepiece(tmp_path: Path) -> None:
    space = "\u2581"
    tokens = ["<unk>", space, "a", "b", "ab", space + "ab", "ba"]
    vocabulary = {
        "tokens": tokens,
        "token_type": [2, 1, 1, 1, 1, 1, 1],
        "scores": [0.0] * 7,
        "unknown_token_id": 0,
        "merges": ["b a", "a b", space + " ab"],
    }
    tokenizer = load(write_vocabulary(tmp_path / "v.gguf", "llama", vocabulary))
    assert tokenizer.encode("ab", add_special_tokens=False) == [5]
    assert tokenizer.encode("aba", add_special_tokens=False) == [1, 2, 6]


def test_a_file_that_does_not_name_its_split_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        path = write_vocabulary(tmp_path / "v.gguf", "gpt2", goldens()["byte_level"])
        tokenizer = load(path)
    assert "does not say how it splits text" in caplog.text
    assert tokenizer.encode("12345") == byte_level(tmp_path, "default").encode("12345")


def vocabulary(**changes: Any) -> dict[str, Any]:
    return {**goldens()["byte_level"], "pre": "qwen2", **changes}


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (
            "gpt2",
            {"pre": "klingon"},
            "splits text by 'klingon', which is unknown; known: chatglm-bpe",
        ),
        ("bert", {}, "has tokenizer 'bert'; supported: gpt2, llama"),
        ("gpt2", {"tokens": None}, "no vocabulary"),
        ("gpt2", {"tokens": ["a", "a", "b"], "token_type": [1, 1, 1]}, r"3 tokens \(2 different\)"),
        ("gpt2", {"token_type": [1, 1]}, "700 tokens .*2 token types"),
        ("llama", {"scores": [0.5]}, "1 scores; the numbers must be equal"),
        ("gpt2", {"merges": ["nothing here"]}, "inconsistent merges"),
        ("gpt2", {"merges": ["one"]}, "inconsistent merges"),
    ],
)
def test_metadata_that_makes_no_tokenizer_is_explained(
    model: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = write_vocabulary(tmp_path / "v.gguf", model, vocabulary(**changes))
    with pytest.raises(ModelError, match=message):
        load(path)


ODD_VALUES = [-1, 0, 7, 1 << 31, 0.5, float("nan"), True, "x", "", ["a"], [1, 2], [0.5], [True]]


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_metadata_of_any_type_gives_a_tokenizer_or_an_error(model: str, tmp_path: Path) -> None:
    known = goldens()["byte_level" if model == "gpt2" else "sentencepiece"]
    named = ["pre", "eos_token_id", "unknown_token_id", "add_bos_token", "add_space_prefix"]
    for key in [*known, *named, "merges", "tokenizer.chat_template"]:
        for value in ODD_VALUES:
            content = {"pre": "qwen2", **known, key: value}
            path = write_vocabulary(tmp_path / "v.gguf", model, content)
            try:
                load(path).encode("hello <s> 12")
            except ModelError as error:
                assert "v.gguf" in str(error) or "splits text" in str(error)
