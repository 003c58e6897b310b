"""Token masks: int32 words, bit ``t % 32`` of word ``t // 32`` set where token ``t`` is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.int32]
"""One mask, int32 [words(V)]."""


def words(vocab_size: int) -> int:
    """Words of a mask over ``vocab_size`` tokens."""
    return (vocab_size + 31) // 32


def allocate(rows: int, vocab_size: int) -> NDArray[np.int32]:
    """Masks for ``rows`` sequences, int32 [rows, words(V)], nothing allowed."""
    return np.zeros((rows, words(vocab_size)), np.int32)


def pack(tokens: Iterable[int], vocab_size: int) -> Row:
    """The mask that allows exactly ``tokens``."""
    row = np.zeros(words(vocab_size), np.int32)
    set_bits(row, np.fromiter(tokens, np.int64))
    return row


def unpack(row: Row) -> NDArray[np.int64]:
    """The allowed tokens, ascending."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)


def few(row: Row) -> Iterator[int]:
    """The allowed tokens, ascending; quicker than `unpack` where they are few."""
    for word in np.flatnonzero(row).tolist():
        bits = int(row[word]) & 0xFFFFFFFF
        while bits:
            lowest = bits & -bits
            yield 32 * word + lowest.bit_length() - 1
            bits ^= lowest


def set_bits(row: Row, tokens: NDArray[np.int64]) -> None:
    """Allow ``tokens`` (any order, repeats are fine), in place."""
    masks = np.left_shift(np.uint32(1), (tokens % 32).astype(np.uint32))
    np.bitwise_or.at(row.view(np.uint32), tokens // 32, masks)
