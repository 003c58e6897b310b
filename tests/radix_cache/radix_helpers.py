"""A tree small enough to read: pages of eight tokens, each page spelled by one letter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phloem.radix_cache import Insert, Match, Node, PagePool, RadixCache

PAGE = 8


class Clock:
    """Time that moves when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self) -> float:
        self.now += 1.0
        return self.now


def ids(*pages: int) -> NDArray[np.int32]:
    return np.array(pages, dtype=np.int32)


def spell(word: str, tail: int = 0) -> NDArray[np.int32]:
    """A page of equal tokens for each letter; of the last letter only ``tail`` tokens, if given."""
    letters = np.array([ord(letter) for letter in word], dtype=np.int32)
    tokens = np.repeat(letters, PAGE)
    return tokens[: len(tokens) - PAGE + tail] if tail else tokens


class SmallCache:
    """A pool, a tree over it, and the shortest ways to use them."""

    def __init__(self, num_pages: int = 32) -> None:
        self.clock = Clock()
        self.pool = PagePool(num_pages, PAGE)
        self.tree = RadixCache(self.pool, clock=self.clock)

    def put(self, word: str, namespace: str = "") -> Insert:
        """Insert with pages of its own, which then belong to the tree alone."""
        self.clock.tick()
        pages = self.pool.allocate(len(word))
        inserted = self.tree.insert(namespace, spell(word), pages)
        self.pool.release(pages)
        return inserted

    def match(self, word: str, tail: int = 0, namespace: str = "") -> Match:
        self.clock.tick()
        return self.tree.match(namespace, spell(word, tail))

    def words(self) -> set[str]:
        """What the tree holds, from the root to each leaf."""
        return {word_of(node) for node in self.tree.walk() if not node.children}


def word_of(node: Node) -> str:
    above = word_of(node.parent) if node.parent is not None else ""
    return above + "".join(chr(token) for token in node.tokens[::PAGE])
