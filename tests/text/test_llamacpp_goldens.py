"""Tokenizers built from GGUF metadata give llama.cpp's token ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_samples import byte_level, goldens, load, sentencepiece

from phloem.runtime.text import Tokenizer

OWN_WAY = {"tekken": "हिन्दी", "gpt-4o": "हिन्दी", "deepseek-coder": "\u3000"}
"""Where llama.cpp departs from the models' own expressions: it leaves marks out of words, and
does not apply the Chinese range to what an earlier expression took."""


def check(tokenizer: Tokenizer, expected: list[list[int]], skip: str | None = None) -> None:
    for text, ids in zip(goldens()["texts"], expected, strict=True):
        if skip is None or skip not in text:
            assert tokenizer.encode(text, add_special_tokens=False) == ids, text


@pytest.mark.parametrize("split", goldens()["splits"])
def test_each_split_of_byte_level_text(split: str, tmp_path: Path) -> None:
    check(byte_level(tmp_path, split), goldens()["splits"][split], OWN_WAY.get(split))


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_with_and_without_a_space_before_the_text(
    prefix: bool, tmp_path: Path
) -> None:
    tokenizer = sentencepiece(tmp_path, add_space_prefix=prefix)
    check(tokenizer, goldens()["with_prefix" if prefix else "without_prefix"])


@pytest.mark.slow
def test_the_default_model(default_model: Path) -> None:
    tokenizer = load(default_model)
    check(tokenizer, goldens()["smollm2"])
    assert tokenizer.vocab_size == 49152
    assert (tokenizer.eos_token_ids, tokenizer.bos_token_id) == ((2,), 1)
