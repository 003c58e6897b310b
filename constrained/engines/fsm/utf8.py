"""From classes of characters to bytes: an automaton that reads one character's UTF-8."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phloem.constrained.engines.fsm.partition import Partition

_BLOCK = 64
"""Characters that a last byte tells apart."""


@dataclass(frozen=True, slots=True)
class Letters:
    """Where in a character a byte leads.

    Attributes:
        moves: int32 [nodes, 256]. Below ``nodes``: the node after the byte; node 0 is the place
            between characters, so it is none. From ``nodes`` on: ``nodes`` + the class of the
            character that the byte completes, or ``nodes`` + the number of classes where no
            character of a class goes on with it.
        below: bool [nodes, classes], the classes of the characters that may come out.
    """

    moves: NDArray[np.int32]
    below: NDArray[np.bool_]

    @property
    def nodes(self) -> int:
        return len(self.moves)


def letters(partition: Partition) -> Letters:
    """The automaton for the classes of ``partition``, minimal."""
    builder = _Builder(partition.count)
    first = [builder.none] * 256
    for (low, high), leads in _LEADS.items():
        pieces = _Pieces(partition.pieces, low, high, partition.count)
        for lead, base, depth in leads:
            first[lead] = builder.block(pieces, base, depth)
    builder.rows[0] = first
    return builder.finish()


_LEADS = {
    (0, 0x7F): [(byte, byte, 0) for byte in range(0x80)],
    (0x80, 0x7FF): [(0xC0 + bits, bits << 6, 1) for bits in range(0x20)],
    (0x800, 0xD7FF): [(0xE0 + bits, bits << 12, 2) for bits in range(0xE)],
    (0xE000, 0xFFFF): [(0xE0 + bits, bits << 12, 2) for bits in (0xE, 0xF)],
    (0x10000, 0x10FFFF): [(0xF0 + bits, bits << 18, 3) for bits in range(5)],
}
"""What a length may encode -> (first byte, first code point, bytes that follow)."""


class _Pieces:
    """Classes of the code points from ``low`` to ``high``; others are of the class ``none``."""

    def __init__(
        self, pieces: Sequence[tuple[int, int, int]], low: int, high: int, none: int
    ) -> None:
        self._starts = [0]
        self._classes = [none]
        for first, last, number in pieces:
            if first <= high and last >= low:
                self._append(max(first, low), number)
                self._append(min(last, high) + 1, none)

    def _append(self, start: int, number: int) -> None:
        if self._starts[-1] == start:
            self._classes[-1] = number
        else:
            self._starts.append(start)
            self._classes.append(number)

    def uniform(self, low: int, size: int) -> int | None:
        """The class of all ``size`` code points from ``low`` on; None if they differ."""
        index = bisect_right(self._starts, low) - 1
        ends = self._starts[index + 1] if index + 1 < len(self._starts) else low + size
        return self._classes[index] if low + size <= ends else None


class _Builder:
    """Rows of nodes, equal ones once; a class is written as its negative less one."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self.none = ~classes
        self.rows: list[list[int]] = [[]]
        self._known: dict[tuple[int, ...], int] = {}
        self._uniform: dict[tuple[int, int], int] = {}

    def block(self, pieces: _Pieces, base: int, depth: int) -> int:
        """The place from which ``depth`` bytes tell the code points from ``base`` on apart."""
        size = _BLOCK**depth
        number = pieces.uniform(base, size)
        if number is not None:
            return self._all(number, depth)
        step = size // _BLOCK
        return self._node([self.block(pieces, base + i * step, depth - 1) for i in range(_BLOCK)])

    def _all(self, number: int, depth: int) -> int:
        if depth == 0 or ~number == self.none:
            return ~number
        key = number, depth
        if key not in self._uniform:
            self._uniform[key] = self._node([self._all(number, depth - 1)] * _BLOCK)
        return self._uniform[key]

    def _node(self, after: list[int]) -> int:
        key = tuple(after)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append([self.none] * 128 + after + [self.none] * 64)
        return self._known[key]

    def finish(self) -> Letters:
        signed = np.array(self.rows, np.int32)
        below = np.zeros((len(signed), self._classes), bool)
        for node in [*range(1, len(signed)), 0]:  # what a node leads to stands before it
            targets = np.unique(signed[node])
            ends = ~targets[targets < 0]
            below[node, ends[ends < self._classes]] = True
            below[node] |= below[targets[targets > 0]].any(axis=0)
        moves = np.where(signed < 0, len(signed) + ~signed, signed).astype(np.int32)
        return Letters(moves, below)
