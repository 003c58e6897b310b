"""Masks as 32-bit words, as most engines write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


def allocate(tokens: int) -> Words:
    """Room for ``tokens`` bits."""
    return np.zeros((tokens + 31) // 32, np.uint32)


def has(words: Words, token: int) -> bool:
    return bool(int(words[token // 32]) >> token % 32 & 1)
