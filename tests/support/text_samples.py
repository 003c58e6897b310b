"""Small tokenizers of both spellings, and hypothesis strategies over text and tokens."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gguf_writing import write_vocabulary
from hypothesis import strategies as st

from phloem.runtime.store import ModelFiles
from phloem.runtime.text import Tokenizer, load_tokenizer

DATA = Path(__file__).parents[1] / "text" / "data"


@cache
def goldens() -> dict[str, Any]:
    """Texts, small vocabularies and what llama.cpp makes of them; see ``make_goldens.py``."""
    content: dict[str, Any] = json.loads((DATA / "goldens.json").read_text())
    return content


def byte_level(folder: Path, split: str = "qwen2", **more: Any) -> Tokenizer:
    path = folder / "byte_level.gguf"
    return load(write_vocabulary(path, "gpt2", goldens()["byte_level"], pre=split, **more))


def sentencepiece(folder: Path, **more: Any) -> Tokenizer:
    path = folder / "sentencepiece.gguf"
    return load(write_vocabulary(path, "llama", goldens()["sentencepiece"], **more))


def load(path: Path) -> Tokenizer:
    return load_tokenizer(ModelFiles("gguf", path))


SNIPPETS = st.sampled_from(
    ["hello", " world", "  ", "\n", "漢字", "한국어", "\u1112\u1161\u11ab", "😀", "👨‍👩‍👧", "é",
     "e\u0301", "123", "<|im_end|>", "<s>", "</s>", "\u00a0", "'s", "\ufffd", "\x00", "ﬁ"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.one_of(SNIPPETS, st.text(max_size=3))).map("".join)
)
