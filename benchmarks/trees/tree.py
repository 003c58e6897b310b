"""What is measured of a prefix cache."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

PAGE = 16
"""Tokens of a page, in all contestants."""

Tokens = NDArray[np.int32]


class Tree(Protocol):
    """A prefix cache over ``capacity`` pages, with nothing in it.

    Tokens come in whole pages, in the type that the cache's callers would have them in, which
    ``prepare`` makes outside of what is timed.
    """

    name: str

    def prepare(self, tokens: Tokens) -> object:
        """Tokens as ``match`` and ``insert`` take them."""

    def match(self, tokens: object) -> int:
        """How many tokens are cached."""

    def insert(self, tokens: object) -> None:
        """Add what is missing, in new pages."""

    def evict(self, pages: int) -> None:
        """Free so many pages, the least recently used first."""
