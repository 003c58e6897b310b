"""Tools of the tests: a tokenizer, texts to tokens, random walks under masks."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from phloem.constrained import (
    Grammar,
    GrammarCompiler,
    GrammarOptions,
    GrammarSpec,
    Matcher,
    Vocabulary,
    allocate,
)
from phloem.constrained.bitmask import unpack

MODEL_WIDTH = 1_003

_CORPUS = [
    'The quick brown fox jumps over the lazy dog. {"name": "Ada", "age": 36, "tags": ["a", "b"]}',
    '{"orderId": 12, "orderName": "été", "total": -1.5e3, "ok": true, "none": null, "x": false}',
    '[{"value": "hello world"}, {"value": "日本語 😀"}]\n  "description": "user_id", "type": "string"',
    "0123456789 10 100 1000 2024-01-31T12:30:00Z 192.168.0.1 user@example.com https://a.b/c",
    'class Foo(Bar):\n    def run(self, x: int) -> str:\n        return f"{x}" + "\\n"\n',
    "yes no maybe alpha beta gamma choice number one two three red green blue",
]


def tiny_tokenizer() -> Tokenizer:
    """ByteLevel BPE with all 256 bytes, some merges and three special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS * 3, trainer)
    return tokenizer


def schema_spec(schema: Any, **options: Any) -> GrammarSpec:
    """A spec for a schema given as a Python value."""
    return GrammarSpec("json_schema", json.dumps(schema), GrammarOptions(**options))


def mask_of(matcher: Matcher, vocab_size: int) -> np.ndarray:
    """A fresh mask row."""
    row = allocate(1, vocab_size)[0]
    matcher.fill(row)
    return row


@dataclass(frozen=True)
class Bench:
    """A compiler with its tokenizer."""

    compiler: GrammarCompiler
    vocabulary: Vocabulary

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.vocabulary.tokenizer_json)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: list[int]) -> bytes:
        return b"".join(self.vocabulary.token_bytes[token] for token in tokens)

    def schema(self, schema: Any, **options: Any) -> Grammar:
        return self.compiler.compile(schema_spec(schema, **options))

    def accepts(self, grammar: Grammar, text: str) -> bool:
        """Whether the whole of ``text`` may be written, by the tokenizer's own tokens."""
        matcher = grammar.matcher()
        tokens = self.encode(text)
        return matcher.accept_many(tokens) == len(tokens) and matcher.accepting

    def walk(self, grammar: Grammar, rng: random.Random, steps: int) -> str | None:
        """A random text: uniform over the mask for ``steps`` tokens, then heading for the end.

        None if it does not end within four times as many.
        """
        matcher, tokens = grammar.matcher(), []
        for step in range(4 * steps):
            allowed = unpack(mask_of(matcher, self.vocabulary.size)).tolist()
            allowed = [token for token in allowed if token not in self.vocabulary.eos_ids]
            if matcher.accepting and (step >= steps or not allowed or rng.random() < 0.2):
                return self.decode(tokens).decode()
            if step >= steps:
                allowed = sorted(allowed, key=self._closing)[:2]
            tokens.append(rng.choice(allowed))
            matcher.accept(tokens[-1])
        return None

    def _closing(self, token: int) -> tuple[int, int]:
        """Lower for what tends to end a document: closing brackets, quotes, short tokens."""
        data = self.vocabulary.token_bytes[token]
        return -sum(data.count(byte) for byte in b'"}]') + 4 * sum(map(data.count, b"{[,\\ ")), len(
            data
        )
