"""Which tokens spell which bytes."""

from __future__ import annotations

from collections import defaultdict

from phloem.constrained.vocabulary import Vocabulary


class TokenIndex:
    """The text tokens of a vocabulary by their bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        by_bytes: defaultdict[bytes, list[int]] = defaultdict(list)
        for token in vocabulary.text_ids:
            by_bytes[vocabulary.token_bytes[token]].append(token)
        self._by_bytes = dict(by_bytes)
        self._heads = frozenset(
            data[:end] for data in self._by_bytes for end in range(len(data) + 1)
        )

    def spelling(self, data: bytes) -> list[int]:
        """The tokens whose bytes are ``data``."""
        return self._by_bytes.get(data, [])

    def begins_token(self, data: bytes) -> bool:
        """Whether ``data`` is the head of a token's bytes, or all of them."""
        return data in self._heads
