"""Phloem's radix tree."""

from __future__ import annotations

from phloem.radix_cache import PagePool, RadixCache
from trees.tree import PAGE, Tokens


class Phloem:
    name = "phloem"

    def __init__(self, capacity: int) -> None:
        self._pool = PagePool(capacity, PAGE)
        self._tree = RadixCache(self._pool)

    def prepare(self, tokens: Tokens) -> Tokens:
        return tokens

    def match(self, tokens: Tokens) -> int:
        return self._tree.match("", tokens).length

    def insert(self, tokens: Tokens) -> None:
        pages = self._pool.allocate(len(tokens) // PAGE)
        self._tree.insert("", tokens, pages)
        self._pool.release(pages)

    def evict(self, pages: int) -> None:
        self._tree.evict(pages)
