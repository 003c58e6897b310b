"""Cached runs that are kept for a time though nobody uses them, as while an agent's tool runs."""

from __future__ import annotations

import heapq
from itertools import count

from phloem.radix_cache.node import Node
from phloem.radix_cache.tree import RadixCache, path


class Pins:
    """Locks that end by themselves, on the tree's own clock.

    A pin protects what is cached against what else is cached. It gives way to use: whoever finds
    no page for a running request calls ``drop_first`` and evicts again.

    Attributes:
        pages: pages under a pin; each counts once, however many pins reach over it.
    """

    def __init__(self, tree: RadixCache, most_pages: int) -> None:
        """``most_pages``: beyond these, the pins that end first are dropped."""
        self.pages = 0
        self._tree = tree
        self._most_pages = most_pages
        self._ends: dict[Node, float] = {}
        self._heap: list[tuple[float, int, Node]] = []  # some of pins that are gone
        self._order = count()

    def place(self, node: Node, seconds: float) -> None:
        """Keep the path to ``node``, which is in the tree, for so long from now.

        Pins above that end no later are taken up into this one, so a conversation has one pin.
        Nothing is done if the path is longer than all pins together may be.
        """
        end = self._tree.clock() + seconds
        if node.is_root or self._ends.get(node, end - 1) >= end:
            return
        if sum(len(step.pages) for step in path(node)) > self._most_pages:
            return
        self._tree.lock(node)
        self._count(node, +1)
        for step in list(path(node)):
            if self._ends.get(step, end + 1) <= end:
                self._drop(step)
        self._ends[node] = end
        self._enter(node, end)
        while self.pages > self._most_pages:
            self.drop_first()

    def expire(self) -> None:
        """Drop the pins whose time is over."""
        now = self._tree.clock()
        while (node := self._first()) is not None and self._ends[node] <= now:
            self._drop(node)

    def drop_first(self) -> bool:
        """Drop the pin that ends first; False if there is none."""
        node = self._first()
        if node is not None:
            self._drop(node)
        return node is not None

    def clear(self) -> None:
        """Drop all."""
        while self.drop_first():
            pass

    def _enter(self, node: Node, end: float) -> None:
        if len(self._heap) > 2 * len(self._ends):  # most are of pins that are gone
            self._heap = [entry for entry in self._heap if self._ends.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (end, next(self._order), node))

    def _first(self) -> Node | None:
        """The pinned node whose time ends first."""
        while self._heap:
            end, _, node = self._heap[0]
            if self._ends.get(node) == end:
                return node
            heapq.heappop(self._heap)
        return None

    def _drop(self, node: Node) -> None:
        del self._ends[node]
        self._count(node, -1)
        self._tree.unlock(node)

    def _count(self, node: Node, change: int) -> None:
        for step in path(node):
            was_pinned = step.pins > 0
            step.pins += change
            self.pages += len(step.pages) * ((step.pins > 0) - was_pinned)

    def __len__(self) -> int:
        return len(self._ends)
