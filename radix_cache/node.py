"""The nodes of the tree."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.runs import Tokens, decode, shared_tokens

NO_PAGES: Pages = np.empty(0, dtype=np.int32)


class Children:
    """A node's children by the first page of their edges, which differ."""

    __slots__ = ("_by_page", "_order")

    def __init__(self) -> None:
        self._by_page: dict[bytes, Node] = {}
        self._order: list[bytes] = []  # the same keys, sorted

    def get(self, page: bytes) -> Node | None:
        return self._by_page.get(page)

    def add(self, page: bytes, node: Node) -> None:
        """Add the child, or put it in the place of the one with this first page."""
        if page not in self._by_page:
            insort(self._order, page)
        self._by_page[page] = node

    def remove(self, page: bytes) -> None:
        del self._by_page[page]
        del self._order[bisect_left(self._order, page)]

    def nearest(self, query: bytes, at: int, page_bytes: int) -> tuple[Node | None, int]:
        """The child whose first page has the longest head in common with ``query[at:]``.

        Returns the child and the length of that head in tokens; (None, 0) if there is none.
        Among sorted keys, the longest common head is that of a neighbour.
        """
        place = bisect_left(self._order, query[at : at + page_bytes])
        best, length = None, 0
        for page in self._order[max(place - 1, 0) : place + 1]:
            shared = shared_tokens(page, query, at)
            if shared > length:
                best, length = self._by_page[page], shared
        return best, length

    def items(self) -> Iterable[tuple[bytes, Node]]:
        return self._by_page.items()

    def in_order(self) -> bool:
        """Whether the sorted keys are the keys: an invariant."""
        return self._order == sorted(self._by_page)

    def __len__(self) -> int:
        return len(self._by_page)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._by_page.values())


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """An edge of the tree and what lies below it; to callers of RadixCache, a handle.

    Attributes:
        namespace: of the root above.
        run: the edge's tokens (see runs.py), whole pages.
        pages: int32 [len(run) / bytes per page], the KV of the run.
        parent: None for a root and for a node that is no longer in the tree.
        locks: users of this node or of any node below.
        last_access: time at which a match or an insertion last went through.
        age: of the cache at that time, in turnovers: evicted pages over all pages.
        created: time at which the run was added.
        hits: in how many turnovers a sequence that was inserted went on from the run's end; one
            more where a run was split, for the lower part.
        counted: the age at which ``hits`` grew last, or the run was added.
        priority: the highest of a sequence that was inserted through here.
        depth: tokens from the root to the run's end.
        pins: those of its locks that end by themselves (see pins.py).
    """

    namespace: str
    run: bytes
    pages: Pages
    parent: Node | None
    locks: int = 0
    last_access: float = 0.0
    age: float = 0.0
    created: float = 0.0
    hits: int = 0
    counted: float = 0.0
    priority: int = 0
    depth: int = 0
    pins: int = 0
    children: Children = field(default_factory=Children)

    @classmethod
    def root(cls, namespace: str) -> Node:
        """The empty run, from which all runs of a namespace descend."""
        return cls(namespace, b"", NO_PAGES, None)

    def __repr__(self) -> str:
        return f"<Node of {self.namespace!r}: {len(self.pages)} pages, {self.locks} locks>"

    def count_use(self) -> None:
        """Count a sequence that goes on from the run's end.

        What comes within a turnover of the last one tells nothing new: an unused run stays as
        long (the correlated references of O'Neil et al., 1993).
        """
        if self.age >= self.counted + 1:
            self.hits += 1
            self.counted = self.age

    @property
    def tokens(self) -> Tokens:
        """The edge's tokens, int32."""
        return decode(self.run)

    @property
    def is_root(self) -> bool:
        return not self.run

    @property
    def is_evictable_leaf(self) -> bool:
        """Whether it could be removed now; never true of a root."""
        return self.parent is not None and not self.locks and not self.children
