"""Compiled grammars by key: least recently used out, by bytes and by number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from phloem.constrained.matcher import Grammar


class GrammarCache:
    """Not thread-safe. Holds at most ``max_bytes`` and ``max_entries``, save a single larger one.

    That one is kept until the next comes, so that a grammar just compiled is never lost.
    """

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._grammars: OrderedDict[Hashable, Grammar] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._grammars)

    def get(self, key: Hashable) -> Grammar | None:
        """The grammar, which becomes the most recently used."""
        grammar = self._grammars.get(key)
        if grammar is not None:
            self._grammars.move_to_end(key)
        return grammar

    def put(self, key: Hashable, grammar: Grammar) -> None:
        """Add ``grammar`` under a new ``key``, and evict."""
        self._grammars[key] = grammar
        self.nbytes += grammar.nbytes
        while len(self._grammars) > 1 and (
            self.nbytes > self._max_bytes or len(self._grammars) > self._max_entries
        ):
            _, evicted = self._grammars.popitem(last=False)
            self.nbytes -= evicted.nbytes
