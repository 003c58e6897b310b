"""Which leaf goes first when pages are needed.

A policy is a function from a node to a sort key: the leaf with the least key is evicted first.
A leaf's key may grow as the leaf is used, but never shrink.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from phloem.radix_cache.node import Node

Key = tuple[float, ...]
Policy = Callable[[Node], Key]


def lru(node: Node) -> Key:
    """Least recently used."""
    return (node.last_access,)


POLICIES: dict[str, Policy] = {"lru": lru}


def find_policy(name: str) -> Policy:
    """Raise ValueError, with the known names, if there is no such policy."""
    if name not in POLICIES:
        raise ValueError(f"policy: {name!r} is not one of {sorted(POLICIES)}")
    return POLICIES[name]


class LeafHeap:
    """The evictable leaves in the order of a policy, lazily.

    Every evictable leaf has one entry. Uses and locks leave the heap alone: an entry whose node
    is no evictable leaf any more is dropped when it comes up, and one whose key has grown is put
    back with the new key. So a match costs no heap work, and the heap is never larger than the
    tree.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heap: list[tuple[Key, int, Node]] = []
        self._entered: set[Node] = set()
        self._order = count()  # breaks ties: first in, first out

    def push(self, node: Node) -> None:
        """Enter a node that became an evictable leaf."""
        if node not in self._entered:
            self._entered.add(node)
            heapq.heappush(self._heap, (self._policy(node), next(self._order), node))

    def pop(self) -> Node | None:
        """Take out the leaf to evict first; None if no leaf is evictable."""
        while self._heap:
            key, _, node = self._heap[0]
            current = self._policy(node)
            if node.is_evictable_leaf and current > key:
                heapq.heapreplace(self._heap, (current, next(self._order), node))
                continue
            heapq.heappop(self._heap)
            self._entered.remove(node)
            if node.is_evictable_leaf:
                return node
        return None

    def clear(self) -> None:
        self._heap.clear()
        self._entered.clear()

    def __contains__(self, node: Node) -> bool:
        return node in self._entered
