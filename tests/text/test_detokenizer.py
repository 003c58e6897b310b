"""Streamed text is the decoded text, however the tokens are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_samples import TEXTS, byte_level, sentencepiece

from phloem.runtime.text import Detokenizer, Tokenizer

IDS = st.lists(st.integers(-1, 710), max_size=60)
NAMES = st.sampled_from(["byte_level", "sentencepiece"])


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {"byte_level": byte_level(folder), "sentencepiece": sentencepiece(folder)}


def streamed(detokenizer: Detokenizer, ids: list[int], cuts: list[int]) -> list[str]:
    """The texts of pushes of as many tokens as ``cuts`` say, in turn, and the last text."""
    texts = []
    while ids:
        size = cuts[len(texts) % len(cuts)]
        texts.append(detokenizer.push(ids[:size]))
        ids = ids[size:]
    return [*texts, detokenizer.finish()]


@given(ids=IDS, cuts=st.lists(st.integers(1, 5), min_size=1), skip=st.booleans(), name=NAMES)
def test_any_tokens_in_any_cuts(
    ids: list[int], cuts: list[int], skip: bool, name: str, tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers[name]
    texts = streamed(Detokenizer(tokenizer, skip), ids, cuts)
    assert "".join(texts) == tokenizer.decode(ids, skip_special_tokens=skip)


@given(text=TEXTS, name=NAMES)
def test_text_is_streamed_without_broken_characters(
    text: str, name: str, tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers[name]
    ids = tokenizer.encode(text, add_special_tokens=False, parse_special=False)
    texts = streamed(Detokenizer(tokenizer), ids, [1])
    assert "".join(texts) == text
    assert sum(part.count("\ufffd") for part in texts) == text.count("\ufffd")
    assert texts[-1] == ""


@pytest.mark.parametrize("name", ["byte_level", "sentencepiece"])
def test_bytes_that_never_complete_a_character(name: str, tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers[name]
    table = tokenizer.token_bytes_table(tokenizer.vocab_size)
    ids = [table.index(bytes([byte])) for byte in (0xF0, 0x9F, 0x98)] * 2000
    detokenizer = Detokenizer(tokenizer)
    held = 0
    for token_id in ids:
        held = 0 if detokenizer.push([token_id]) else held + 1
        assert held <= 3  # a broken start is shown when the next one begins
    assert detokenizer.finish() == "\ufffd"


def test_special_tokens_are_shown_when_asked(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["byte_level"]
    ids = tokenizer.encode("<|im_start|>user<|im_end|>")
    assert (
        "".join(streamed(Detokenizer(tokenizer, False), ids, [1])) == "<|im_start|>user<|im_end|>"
    )
    assert "".join(streamed(Detokenizer(tokenizer, True), ids, [1])) == "user"


def test_the_space_before_a_text_is_kept_after_a_prompt(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["sentencepiece"]
    ids = tokenizer.encode("hello", add_special_tokens=False)
    assert streamed(Detokenizer(tokenizer), [1, *ids], [1])[-1] == ""
    assert "".join(streamed(Detokenizer(tokenizer), [1, *ids], [1])) == "hello"
    assert "".join(streamed(Detokenizer(tokenizer, continues=True), ids, [1])) == " hello"


def test_a_prompt_and_its_continuation_join_to_the_whole(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["sentencepiece"]
    ids = tokenizer.encode("hello world, hello 漢字", add_special_tokens=False)
    for cut in range(1, len(ids)):
        after = "".join(streamed(Detokenizer(tokenizer, continues=True), ids[cut:], [1]))
        before = tokenizer.decode(ids[:cut])
        if "\ufffd" not in before + after:
            assert before + after == tokenizer.decode(ids)


def test_nothing_gives_nothing(tokenizers: dict[str, Tokenizer]) -> None:
    detokenizer = Detokenizer(tokenizers["sentencepiece"])
    assert detokenizer.push([]) == "" and detokenizer.finish() == ""
