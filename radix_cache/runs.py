"""Token runs as bytes: four per token, big-endian.

In this form the C library does the tree's work: a page is a dictionary key, an edge is compared
by ``bytes.startswith``, and the order of the bytes is the lexicographic order of the tokens
(as unsigned numbers), so that the neighbours of a run in that order share most with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOKEN_BYTES = 4
_TOKEN = np.dtype(">i4")

Tokens = NDArray[np.int32]


def encode(tokens: Tokens) -> bytes:
    """int32 [n] -> 4 n bytes.

    Raises:
        ValueError: another type or more dimensions. Wider integers are not narrowed here:
            a token cut to 32 bits would be taken for another one.
    """
    if tokens.dtype != np.int32 or tokens.ndim != 1:
        raise ValueError(f"tokens: int32 [n] wanted, {tokens.dtype} {list(tokens.shape)} given")
    return tokens.astype(_TOKEN).tobytes()


def decode(run: bytes) -> Tokens:
    """4 n bytes -> int32 [n]."""
    return np.frombuffer(run, dtype=_TOKEN).astype(np.int32)


def shared_tokens(run: bytes, query: bytes, at: int) -> int:
    """How many tokens ``run`` and ``query[at:]`` have in common from their start."""
    count = min(len(run), len(query) - at) // TOKEN_BYTES
    differ = np.frombuffer(run, np.int32, count) != np.frombuffer(query, np.int32, count, at)
    first = int(differ.argmax()) if count else 0
    return first if count and differ[first] else count
