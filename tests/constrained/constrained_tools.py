"""Tools of the tests: a tokenizer, texts to tokens, random walks under masks, a judge."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, getcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import validator_for
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
"""Wider than the tokenizer, and no multiple of 32."""

SHARED = Path(__file__).resolve().parents[3] / "shared"

_CORPUS = [
    'The quick brown fox jumps over the lazy dog. {"name": "Ada", "age": 36, "tags": ["a", "b"]}',
    '{"orderId": 12, "orderName": "été", "total": -1.5e3, "ok": true, "none": null, "x": false}',
    '[{"value": "hello world"}, {"value": "日本語 😀"}]\n  "description": "user_id", "type": "s"',
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


def violations(schema: Any, text: str) -> list[str]:
    """What the jsonschema library has against ``text``; numbers are compared as decimals."""
    getcontext().prec = 400
    instance = json.loads(text, parse_float=_number)
    exact = json.loads(json.dumps(schema), parse_float=_number)
    judge = validator_for(exact, default=Draft202012Validator)(
        exact, format_checker=FormatChecker(["date", "ipv4", "ipv6", "email", "uuid"])
    )
    return [error.message for error in judge.iter_errors(instance)]


def _number(digits: str) -> Decimal | float:
    if len(digits.lower().partition("e")[2]) > 3:
        return float(digits)
    exact = Decimal(digits)
    return exact if abs(exact.adjusted()) < 100 else float(digits)


@dataclass(frozen=True)
class Bench:
    """A compiler with its tokenizer."""

    compiler: GrammarCompiler = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.vocabulary.tokenizer_json)

    @cached_property
    def _byte_tokens(self) -> dict[bytes, int]:
        return {
            data: token for token, data in enumerate(self.vocabulary.token_bytes) if len(data) == 1
        }

    def encode(self, text: str) -> list[int]:
        """The tokenizer's own encoding; text that spells a special token is cut into bytes."""
        if "<|" in text:
            return [self._byte_tokens[bytes([byte])] for byte in text.encode()]
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.vocabulary.token_bytes[token] for token in tokens)

    def grammar(self, kind: Any, text: str) -> Grammar:
        return self.compiler.compile(GrammarSpec(kind, text))

    def schema(self, schema: Any, **options: Any) -> Grammar:
        return self.compiler.compile(schema_spec(schema, **options))

    def accepts(self, grammar: Grammar, text: str) -> bool:
        """Whether the whole of ``text`` may be written, by the tokenizer's own tokens."""
        matcher = grammar.matcher()
        tokens = self.encode(text)
        return matcher.accept_many(tokens) == len(tokens) and matcher.accepting

    def allowed(self, matcher: Matcher) -> list[int]:
        """The text tokens that the mask allows."""
        tokens = unpack(mask_of(matcher, self.vocabulary.size)).tolist()
        return [token for token in tokens if token not in self.vocabulary.eos_ids]

    def walk(self, grammar: Grammar, rng: random.Random, steps: int) -> str | None:
        """A random text: uniform over the mask for ``steps`` tokens, then heading for the end.

        None if it does not end within four times as many.
        """
        matcher = grammar.matcher()
        tokens: list[int] = []
        for step in range(4 * steps):
            allowed = unpack(mask_of(matcher, self.vocabulary.size))
            allowed = allowed[~np.isin(allowed, self.vocabulary.eos_ids)]
            if matcher.accepting and (step >= steps or not allowed.size or rng.random() < 0.2):
                return self.decode(tokens).decode()
            if step >= steps:
                allowed = allowed[np.argsort(self._closing_rank[allowed])[:2]]
            tokens.append(int(allowed[rng.randrange(len(allowed))]))
            matcher.accept(tokens[-1])
        return None

    @cached_property
    def _closing_rank(self) -> np.ndarray:
        """Lower for what tends to end a document: closing brackets, quotes, short tokens."""
        return np.array([self._closing(data) for data in self.vocabulary.token_bytes])

    def _closing(self, data: bytes) -> int:
        closes = sum(data.count(byte) for byte in b'"}]')
        opens = sum(data.count(byte) for byte in b"{[,\\ ")
        return 100 * (4 * opens - closes) + len(data)
