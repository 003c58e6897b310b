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

    def cut(self, text: bytes) -> list[int]:
        """``text`` as tokens, the longest first.

        Raises:
            ValueError: no token begins as the rest does.
        """
        tokens: list[int] = []
        start = 0
        while start < len(text):
            end = start + 1
            while end < len(text) and self.begins_token(text[start : end + 1]):
                end += 1
            while end > start and not self.spelling(text[start:end]):
                end -= 1
            if end == start:
                raise ValueError(f"no token begins with byte {text[start]:#04x}")
            tokens.append(self.spelling(text[start:end])[0])
            start = end
        return tokens

    def spelling(self, data: bytes) -> list[int]:
        """The tokens whose bytes are ``data``."""
        return self._by_bytes.get(data, [])

    def begins_token(self, data: bytes) -> bool:
        """Whether ``data`` is the head of a token's bytes, or all of them."""
        return data in self._heads
