"""An automaton over a sorted list of byte strings.

A place in it is a `Span`: the strings that begin with what was written stand next to each other
in the list, so a trie need not be built.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phloem.constrained.engines.tokenizer import Tokenizer

_CACHED_SPANS = 4_096
_MOST_RESTS = 32
_MOST_REST_BYTES = 8_192
"""Rests to tokenise at most, to find forced tokens."""


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the longest head that both have."""
    shortest = min(len(first), len(second))
    return next((i for i in range(shortest) if first[i] != second[i]), shortest)


def _is_inside_character(text: bytes) -> bool:
    """Whether ``text`` begins with a UTF-8 continuation byte."""
    return 0x80 <= text[0] < 0xC0


class Span(NamedTuple):
    """Strings ``low`` up to ``high``, which agree in their first ``depth`` bytes."""

    low: int
    high: int
    depth: int


class ChoiceSet:
    """The choices, immutable."""

    def __init__(self, choices: Iterable[str], tokenizer: Tokenizer) -> None:
        self._strings = sorted(choice.encode() for choice in choices)
        self._index = tokenizer.index
        self._tokenizer = tokenizer
        self.start = Span(0, len(self._strings), 0)
        self.tokens = lru_cache(_CACHED_SPANS)(self._tokens)
        """Span -> the tokens that may follow, int64."""
        self.forced = lru_cache(_CACHED_SPANS)(self._forced)
        """Span -> the tokens with which the tokenizer's cut of every possible rest begins."""

    @property
    def nbytes(self) -> int:
        """Estimated memory, with the cache full."""
        spans = min(_CACHED_SPANS, sum(map(len, self._strings)) + 1)
        return sum(len(string) + 64 for string in self._strings) + 512 * spans

    def accepting(self, span: Span) -> bool:
        """Whether what was written is one of the strings: it is then the first of the span."""
        return len(self._strings[span.low]) == span.depth

    def stopped(self, span: Span) -> bool:
        """Whether it is one of the strings, and the beginning of no other."""
        return self.accepting(span) and span.high - span.low == 1

    def after(self, span: Span, data: bytes) -> Span | None:
        """The span once ``data`` is written too; None if no string goes on with it."""
        end = span.depth + len(data)
        written = self._strings[span.low][: span.depth] + data
        low = bisect_left(self._strings, written, span.low, span.high)
        high = bisect_right(self._strings, written, low, span.high, key=lambda string: string[:end])
        return Span(low, high, end) if low < high else None

    def _forced(self, span: Span) -> list[int]:
        # Sorted, so what the first and the last share is shared by all.
        first, last = self._strings[span.low], self._strings[span.high - 1]
        common = first[span.depth : shared_length(first, last)]
        if not common or _is_inside_character(common) or span.high - span.low > _MOST_RESTS:
            return []
        rests = [string[span.depth :] for string in self._strings[span.low : span.high]]
        if sum(map(len, rests)) > _MOST_REST_BYTES:
            return []
        encodings = list(map(self._tokenizer.encode, rests))
        tokens = encodings[0][: min(shared_length(encodings[0], other) for other in encodings)]
        spelled = b"".join(self._tokenizer.vocabulary.token_bytes[token] for token in tokens)
        return tokens if common.startswith(spelled) else []

    def _tokens(self, span: Span) -> NDArray[np.int64]:
        found: list[int] = []
        todo = [span]
        while todo:
            here = todo.pop()
            piece = self._strings[here.low][span.depth : here.depth]
            if self._index.begins_token(piece):
                found.extend(self._index.spelling(piece))
                todo.extend(self._next_bytes(here))
        return np.array(found, np.int64)

    def _next_bytes(self, span: Span) -> Iterator[Span]:
        """The spans one byte further."""
        depth = span.depth
        low = span.low + self.accepting(span)
        while low < span.high:
            byte = self._strings[low][depth]
            high = bisect_right(
                self._strings, byte, low, span.high, key=lambda string: string[depth]
            )
            yield Span(low, high, depth + 1)
            low = high
