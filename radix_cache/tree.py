"""The radix tree: which token sequences have their KV in which pages.

The design is SGLang's RadixAttention (Zheng et al., 2023) over whole pages, with the head of a
diverging page offered for copy-on-write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from phloem.radix_cache.errors import InvariantError
from phloem.radix_cache.eviction import LeafHeap, find_policy
from phloem.radix_cache.invariants import check_accounts, check_leaves, check_structure
from phloem.radix_cache.listener import Listener
from phloem.radix_cache.node import NO_PAGES, Node
from phloem.radix_cache.page_pool import PagePool, Pages
from phloem.radix_cache.results import Insert, Match, Partial
from phloem.radix_cache.runs import TOKEN_BYTES, Tokens, encode, shared_tokens


class RadixCache:
    """Token sequences per namespace, sharing what they begin with; over the pages of a pool.

    The tree holds one reference to each of its pages. A page is evictable while no lock is held
    on its node or below it, otherwise protected. A handle (node) that is locked stays in the
    tree, on the same path: splitting an edge makes a new node above it. Not thread-safe.

    Attributes:
        evictable: pages in the tree under no lock.
        protected: pages in the tree under a lock.
        evicted_pages: pages that evictions have freed so far.
        clock: seconds; what "last used" is measured by.
        changes: how often a run came in or went out: what a match finds is the same in between.
        listeners: told what comes in and goes out.
    """

    def __init__(
        self,
        pool: PagePool,
        policy: str = "lru",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """An empty tree.

        Raises:
            ValueError: no policy has this name.
        """
        self.evictable = 0
        self.protected = 0
        self.evicted_pages = 0
        self.changes = 0
        self.listeners: list[Listener] = []
        self._pool = pool
        self._page_bytes = pool.page_size * TOKEN_BYTES
        self._leaves = LeafHeap(find_policy(policy))
        self.clock = clock
        self._roots: dict[str, Node] = {}  # of namespaces with something in them

    @property
    def cached_tokens(self) -> int:
        """Tokens in the tree."""
        return (self.evictable + self.protected) * self._pool.page_size

    def match(self, namespace: str, tokens: Tokens) -> Match:
        """Find the longest cached prefix of ``tokens``, int32 [n]; marks it as used.

        Nothing is retained: lock ``node`` to keep the pages.
        """
        query = encode(tokens)
        node, length, pages = self._descend(self._root(namespace), query)
        partial = self._partial(node, query, length)
        return Match(length // TOKEN_BYTES, pages, node, partial)

    def insert(self, namespace: str, tokens: Tokens, pages: Pages, priority: int = 0) -> Insert:
        """Add ``tokens``, int32 [n], whose KV is in ``pages``, int32 [n / page_size].

        The tree takes its own references to the pages of tokens that it did not have. Where it
        had them it keeps its own pages: a caller goes over to those before it releases its own.
        ``priority`` is that of the sequence, for the policy of this name.

        Raises:
            ValueError: ``tokens`` do not fill ``pages`` exactly.
            InvariantError: a new page is free in the pool; nothing is inserted.
        """
        query = encode(tokens)
        if len(query) != len(pages) * self._page_bytes:
            raise ValueError(
                f"pages: {len(pages)} pages of {self._pool.page_size} tokens do not hold "
                f"{len(tokens)} tokens"
            )
        node, known, found = self._descend(self._root(namespace), query)
        node.count_use()
        if known < len(query):
            fresh = np.array(pages[len(found) :], dtype=np.int32)
            self._pool.retain(fresh)
            node = self._grow(node, query[known:], fresh)
            found = np.concatenate([found, fresh])
        if priority > node.priority:
            raise_priority(node, priority)
        insert = Insert(known // TOKEN_BYTES, found, node)
        if known < len(query):
            for listener in self.listeners:
                listener.inserted(namespace, tokens, insert)
        return insert

    def lock(self, node: Node) -> None:
        """Protect the path from ``node`` to the root, once more.

        Raises:
            InvariantError: the node was evicted since the caller got it.
        """
        if node.parent is None and not node.is_root:
            raise InvariantError("an evicted node cannot be locked")
        for step in path(node):
            if step.locks == 0:
                self.evictable -= len(step.pages)
                self.protected += len(step.pages)
            step.locks += 1

    def unlock(self, node: Node) -> None:
        """Take back one ``lock(node)``.

        Raises:
            InvariantError: the node is not locked.
        """
        if node.locks == 0:
            raise InvariantError("a node that is not locked cannot be unlocked")
        for step in path(node):
            step.locks -= 1
            if step.locks == 0:
                self.evictable += len(step.pages)
                self.protected -= len(step.pages)
        if node.is_evictable_leaf:
            self._leaves.push(node)

    def evict(self, n: int) -> int:
        """Remove unlocked pages, from the ends of runs, until ``n`` have come free.

        Returns how many came free: fewer than ``n`` only if nothing evictable is left. A removed
        page that a caller retains is not counted; it comes free when the caller releases it.
        """
        freed = 0
        while freed < n and (victims := self._remove_leaves(n - freed)):
            for listener in self.listeners:
                for run in victims:
                    listener.evicted(run)
            freed += self._pool.release(np.concatenate(victims))
        self.evicted_pages += freed
        return freed

    def reset(self) -> bool:
        """Remove everything; False, and nothing done, if a page is protected."""
        if self.protected:
            return False
        nodes = list(self.walk())
        self._pool.release(np.concatenate([NO_PAGES, *(node.pages for node in nodes)]))
        for node in nodes:
            node.parent = None
        self._roots.clear()
        self._leaves.clear()
        self.evictable = 0
        self.changes += 1
        for listener in self.listeners:
            listener.cleared()
        return True

    def walk(self) -> Iterator[Node]:
        """All nodes but the roots, parents before their children."""
        stack = list(self._roots.values())
        while stack:
            node = stack.pop()
            if not node.is_root:
                yield node
            stack.extend(node.children)

    def check(self, private: int | None = None) -> None:
        """Verify tree, leaves and accounts; ``private``: pages in use outside the tree.

        Raises:
            InvariantError: something does not add up.
        """
        nodes = list(self.walk())
        check_structure(self._roots, self._page_bytes)
        check_leaves(nodes, self._leaves)
        check_accounts(nodes, self._pool, self.evictable, self.protected, private)

    def _root(self, namespace: str) -> Node:
        """The namespace's root; a new one is registered when it gets its first child."""
        return self._roots.get(namespace) or Node.root(namespace)

    def _descend(self, node: Node, query: bytes) -> tuple[Node, int, Pages]:
        """Follow ``query`` from a root as far as whole pages agree, splitting where it leaves.

        Returns the last node, the length followed in bytes, and the pages on the way.
        """
        node.last_access = now = self.clock()
        node.age = age = self.evicted_pages / self._pool.total
        at, pages = 0, [NO_PAGES]
        while (child := node.children.get(query[at : at + self._page_bytes])) is not None:
            if not query.startswith(child.run, at):
                shared = shared_tokens(child.run, query, at) // self._pool.page_size
                child = self._split(child, shared)
                child.hits += 1  # whoever added the lower part went on from here
            child.last_access = now
            child.age = age
            at += len(child.run)
            pages.append(child.pages)
            node = child
        return node, at, np.concatenate(pages)

    def _partial(self, node: Node, query: bytes, at: int) -> Partial | None:
        if at == len(query):
            return None
        child, tokens = node.children.nearest(query, at, self._page_bytes)
        return Partial(int(child.pages[0]), tokens) if child is not None else None

    def _split(self, node: Node, pages: int) -> Node:
        """Move the first ``pages`` pages of an edge to a new node above it; returns that node.

        The lower part keeps the identity, so that a locked handle still covers its whole path.
        """
        assert node.parent is not None
        cut = pages * self._page_bytes
        upper = Node(
            node.namespace,
            node.run[:cut],
            node.pages[:pages].copy(),
            node.parent,
            node.locks,
            node.last_access,
            node.age,
            node.created,
            node.hits,
            node.counted,
            node.priority,
            node.depth - (len(node.run) - cut) // TOKEN_BYTES,
            node.pins,
        )
        node.parent.children.add(self._first_page(upper), upper)
        node.run, node.pages, node.parent = node.run[cut:], node.pages[pages:].copy(), upper
        upper.children.add(self._first_page(node), node)
        return upper

    def _grow(self, parent: Node, run: bytes, pages: Pages) -> Node:
        """Add a leaf, unlocked and as recently used as its parent."""
        leaf = Node(
            parent.namespace,
            run,
            pages,
            parent,
            last_access=parent.last_access,
            age=parent.age,
            counted=parent.age,
            created=parent.last_access,
            depth=parent.depth + len(run) // TOKEN_BYTES,
        )
        parent.children.add(self._first_page(leaf), leaf)
        if parent.is_root:
            self._roots[parent.namespace] = parent
        self.evictable += len(pages)
        self.changes += 1
        self._leaves.push(leaf)
        return leaf

    def _remove_leaves(self, n: int) -> list[Pages]:
        """Remove ``n`` pages in the policy's order, or as many as are evictable."""
        removed = []
        while n > 0 and (leaf := self._leaves.pop()) is not None:
            if len(leaf.pages) > n:
                self._split(leaf, len(leaf.pages) - n)
            self._remove(leaf)
            removed.append(leaf.pages)
            n -= len(leaf.pages)
        return removed

    def _remove(self, leaf: Node) -> None:
        parent = leaf.parent
        assert parent is not None
        parent.children.remove(self._first_page(leaf))
        leaf.parent = None
        self.evictable -= len(leaf.pages)
        self.changes += 1
        if parent.is_evictable_leaf:
            self._leaves.push(parent)
        elif parent.is_root and not parent.children:
            del self._roots[parent.namespace]

    def _first_page(self, node: Node) -> bytes:
        return node.run[: self._page_bytes]


def path(node: Node) -> Iterator[Node]:
    """The node and its ancestors, from the node to the root."""
    step: Node | None = node
    while step is not None:
        yield step
        step = step.parent


def raise_priority(node: Node, priority: int) -> None:
    """Nodes above are worth as much as what they lead to."""
    for step in path(node):
        step.priority = max(step.priority, priority)
