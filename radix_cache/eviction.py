"""Which leaf goes first when pages are needed.

A policy is a function from a node to a sort key: the leaf with the least key is evicted first.
A leaf's key may grow as the leaf is used, but never shrink.

Hits are counted where an inserted sequence leaves what was in the tree, not where a query looks:
schedulers look again and again at what waits. So a node on the way of many sequences may have few
hits, but it goes after all that is below it in any case.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from phloem.radix_cache.node import Node

Key = tuple[float, ...]
Policy = Callable[[Node], Key]

REUSED = 2
"""Hits that tell lasting use: a branch, or another turn of a conversation, makes one."""

ATTENTION_DEPTH = 32768
"""Position in tokens at which attention costs a token as much as everything else does: in models
of 8 billion parameters (parameters over twice the layers times the width); 4,000 in small ones."""


def lru(node: Node) -> Key:
    """Least recently used."""
    return (node.last_access,)


def fifo(node: Node) -> Key:
    """First in, first out.

    Hardly other than lru: what was added last to a run is as young as the run's last use, and a
    run goes after all that was added to it.
    """
    return (node.created,)


def lfu(node: Node) -> Key:
    """Least frequently used, of these the least recently used."""
    return (node.hits, node.last_access)


def slru(node: Node) -> Key:
    """Least recently used, of what was not used for long before what was.

    The segments of Karedla et al. (1994), without a bound on the protected one: falling back
    from it would be a shrinking key.
    """
    return (node.hits >= REUSED, node.last_access)


def priority(node: Node) -> Key:
    """Lowest priority, of these the least recently used."""
    return (node.priority, node.last_access)


def cost(node: Node) -> Key:
    """Least recomputation per byte, times hits, on top of the age at the last use.

    Greedy-dual-size-frequency (Cherkasova, 1998), with the cache's turnovers as its inflation:
    each hit is worth a further turnover, so former popularity wears off. Pages are equal in
    bytes; computing a page's tokens costs more the further back they are, as each attends to all
    before it.
    """
    recomputation = 1 + node.depth / ATTENTION_DEPTH
    return (node.age + max(node.hits, 1) * recomputation, node.last_access)


POLICIES: dict[str, Policy] = {
    "lru": lru,
    "lfu": lfu,
    "slru": slru,
    "fifo": fifo,
    "priority": priority,
    "cost": cost,
}


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
