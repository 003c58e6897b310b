"""A `Vocabulary` as llguidance's tokenizer, shared by the engines, and the other way round."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import llguidance

from phloem.constrained.vocabulary import Vocabulary


class Tokenizer:
    """The tokenizer of a vocabulary, built when it is first used (0.3 s for 49 k tokens).

    One that llguidance cannot read from its JSON is replaced by the bare bytes of its tokens, with
    which all works but forced tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._lock = threading.Lock()

    @property
    def native(self) -> llguidance.LLTokenizer:
        """llguidance's object.

        Raises:
            ValueError: the vocabulary's ``tokenizer_json`` and ``token_bytes`` disagree.
        """
        with self._lock:
            return self._native

    def encode(self, text: bytes) -> list[int]:
        """The tokens that the model's tokenizer makes of ``text``; empty if it is not known."""
        native = self.native
        return native.tokenize_bytes(text) if native.is_canonical else []

    @cached_property
    def _native(self) -> llguidance.LLTokenizer:
        vocabulary = self.vocabulary
        canonical = _from_json(vocabulary) if vocabulary.tokenizer_json else None
        if canonical is not None:
            _check_bytes(canonical, vocabulary)
            return canonical
        return llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_BareTokens(vocabulary)),
            n_vocab=vocabulary.size,
            eos_token=list(vocabulary.eos_ids),
        )


def read_vocabulary(tokenizer_json: str, vocab_size: int, eos_ids: Sequence[int]) -> Vocabulary:
    """The vocabulary of a serialised tokenizer, padded to ``vocab_size`` tokens.

    Raises:
        ValueError: llguidance cannot read the tokenizer.
    """
    tokenizer = llguidance.LLTokenizer(tokenizer_json, n_vocab=vocab_size, eos_token=list(eos_ids))
    special = frozenset(filter(tokenizer.is_special_token, range(vocab_size)))
    return Vocabulary(
        token_bytes=[
            b"" if token in special else tokenizer.decode_bytes([token])
            for token in range(vocab_size)
        ],
        eos_ids=tuple(eos_ids),
        special_ids=special,
        tokenizer_json=tokenizer_json,
    )


def _from_json(vocabulary: Vocabulary) -> llguidance.LLTokenizer | None:
    try:
        return llguidance.LLTokenizer(
            vocabulary.tokenizer_json,
            n_vocab=vocabulary.size,
            eos_token=list(vocabulary.eos_ids),
        )
    except ValueError:
        return None


def _check_bytes(tokenizer: llguidance.LLTokenizer, vocabulary: Vocabulary) -> None:
    for token in vocabulary.text_ids:
        if tokenizer.decode_bytes([token]) != vocabulary.token_bytes[token]:
            raise ValueError(
                f"token {token} is {vocabulary.token_bytes[token]!r} in token_bytes, but "
                f"{tokenizer.decode_bytes([token])!r} in tokenizer_json"
            )


class _BareTokens:
    """What llguidance asks of a tokenizer that it knows by its tokens alone."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.bos_token_id = None
        self.tokens = list(vocabulary.token_bytes)
        self.special_token_ids = sorted(set(range(vocabulary.size)) - vocabulary.text_ids)

    def __call__(self, text: bytes) -> list[int]:
        """Not known: llguidance takes the tokenizer as not canonical and forces no tokens."""
        raise ValueError(f"these tokens cannot encode {len(text)} bytes")
