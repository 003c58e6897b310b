"""A `Vocabulary` as llguidance's tokenizer, shared by the engines, and the other way round."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import cached_property

import llguidance

from phloem.constrained.engines.token_index import TokenIndex
from phloem.constrained.vocabulary import Vocabulary


class Tokenizer:
    """The tokenizer of a vocabulary, built when it is first used (0.3 s for 49 k tokens).

    One that llguidance cannot read from its JSON is replaced by the bare bytes of its tokens:
    forced text is then cut into the longest tokens, maybe not as the tokenizer would cut it.
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
            return self._canonical or self._bare

    @property
    def index(self) -> TokenIndex:
        """The tokens by their bytes."""
        with self._lock:
            return self._index

    def encode(self, text: bytes) -> list[int]:
        """``text`` as tokens; empty if they cannot spell it."""
        with self._lock:
            canonical = self._canonical
        if canonical is not None:
            return list(canonical.tokenize_bytes(text))
        try:
            return self.index.cut(text)
        except ValueError:
            return []

    @cached_property
    def _canonical(self) -> llguidance.LLTokenizer | None:
        if not self.vocabulary.tokenizer_json:
            return None
        try:
            tokenizer = llguidance.LLTokenizer(
                _without_special(self.vocabulary),
                n_vocab=self.vocabulary.size,
                eos_token=list(self.vocabulary.eos_ids),
            )
        except ValueError:
            return None
        _check_bytes(tokenizer, self.vocabulary)
        return tokenizer

    @cached_property
    def _bare(self) -> llguidance.LLTokenizer:
        return llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_BareTokens(self.vocabulary, self._index)),
            n_vocab=self.vocabulary.size,
            eos_token=list(self.vocabulary.eos_ids),
        )

    @cached_property
    def _index(self) -> TokenIndex:
        return TokenIndex(self.vocabulary)


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


def _without_special(vocabulary: Vocabulary) -> str:
    """The tokenizer without its special tokens.

    With them, a constant that happens to read ``<|im_end|>`` would be cut into the control token.
    """
    data = json.loads(vocabulary.tokenizer_json)
    added = data.get("added_tokens") or []
    data["added_tokens"] = [item for item in added if item["id"] in vocabulary.text_ids]
    return json.dumps(data)


def _check_bytes(tokenizer: llguidance.LLTokenizer, vocabulary: Vocabulary) -> None:
    for token in vocabulary.text_ids:
        ours, theirs = vocabulary.token_bytes[token], tokenizer.decode_bytes([token])
        # 0xff is in no text; llguidance uses it as a mark and reads such tokens as empty.
        if ours != theirs and ours[0] != 0xFF:
            raise ValueError(
                f"token {token} is {ours!r} in token_bytes, but {theirs!r} in tokenizer_json"
            )


class _BareTokens:
    """What llguidance asks of a tokenizer that it knows by its tokens alone."""

    def __init__(self, vocabulary: Vocabulary, index: TokenIndex) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.bos_token_id = None
        self.tokens = list(vocabulary.token_bytes)
        self.special_token_ids = sorted(set(range(vocabulary.size)) - vocabulary.text_ids)
        self._index = index

    def __call__(self, text: bytes | str) -> list[int]:
        return self._index.cut(text.encode() if isinstance(text, str) else text)
