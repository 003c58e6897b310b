"""The pages of each sequence: taken, shared through the radix tree, copied on write, given back.

This is the only place where a sequence's pages change hands. A running sequence holds one
reference to each page of its table, and a lock on the tree node whose pages lead the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from phloem.radix_cache import InvariantError, Match, PagePool, RadixCache
from phloem.runtime.scheduling.sequence import Sequence


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy KV of page ``source`` to page ``target`` before the step writes."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class PageUsage:
    """Pages by owner: free + evictable + protected + private == total; ``evicted`` so far."""

    total: int
    free: int
    evictable: int
    protected: int
    private: int
    evicted: int


class SequenceMemory:
    """Pages for sequences, from a pool with (or without) a radix tree over it."""

    def __init__(self, pool: PagePool, tree: RadixCache | None) -> None:
        self.pool = pool
        self.tree = tree
        self.page_size = pool.page_size

    @property
    def available(self) -> int:
        """Pages that a sequence could be given now."""
        return self.pool.free + (self.tree.evictable if self.tree else 0)

    def pages_for(self, tokens: int) -> int:
        return -(-tokens // self.page_size)

    def match(self, seq: Sequence) -> Match | None:
        """What the tree holds of the sequence's reusable tokens; None without a tree."""
        if self.tree is None:
            return None
        return self.tree.match(seq.namespace, seq.tokens.view()[: seq.reusable])

    def cached_length(self, seq: Sequence) -> int:
        """How many tokens of a waiting sequence the tree would spare."""
        match = self.match(seq)
        if match is None:
            return 0
        return match.length + (match.partial.tokens if match.partial else 0)

    def attach(self, seq: Sequence) -> None:
        """Begin to run: take the cached prefix, if any, as the head of the page table."""
        match = self.match(seq)
        if match is not None:
            self._take_match(seq, match)
        if seq.cached_tokens is None:
            seq.cached_tokens = seq.computed

    def _take_match(self, seq: Sequence, match: Match) -> None:
        assert self.tree is not None
        self.tree.lock(match.node)
        self.pool.retain(match.pages)
        seq.node = match.node
        seq.shared_pages = len(match.pages)
        seq.pages.extend(match.pages)
        seq.computed = match.length
        if match.partial is not None:
            # Shared until the first write, which copies it (see reserve).
            self.pool.retain(np.array([match.partial.page], dtype=np.int32))
            seq.pages.append(match.partial.page)
            seq.computed += match.partial.tokens

    def reserve(self, seq: Sequence, count: int) -> list[PageCopy] | None:
        """Make room to write the next ``count`` tokens; None, and nothing taken, if there is none.

        A half-filled last page that others hold too (a fork, a partial cache hit) is replaced
        by a copy of its own.
        """
        copy_on_write = self._writes_shared_page(seq)
        growth = self.pages_for(seq.computed + count) - len(seq.pages)
        wanted = max(growth, 0) + copy_on_write
        if not self._make_free(wanted):
            return None
        fresh = self.pool.allocate(wanted)
        copies = []
        if copy_on_write:
            copies.append(self._replace_last(seq, int(fresh[0])))
            fresh = fresh[1:]
        seq.pages.extend(fresh)
        return copies

    def _writes_shared_page(self, seq: Sequence) -> bool:
        if seq.computed % self.page_size == 0:
            return False
        page = seq.pages.view()[seq.computed // self.page_size]
        return self.pool.refcount(int(page)) > 1

    def _replace_last(self, seq: Sequence, fresh: int) -> PageCopy:
        table = seq.pages.view()
        at = seq.computed // self.page_size
        shared = int(table[at])
        table[at] = fresh
        self.pool.release(np.array([shared], dtype=np.int32))
        return PageCopy(shared, fresh)

    def _make_free(self, wanted: int) -> bool:
        missing = wanted - self.pool.free
        if missing > 0 and self.tree is not None:
            self.tree.evict(missing)
        return self.pool.free >= wanted

    def checkpoint(self, seq: Sequence) -> None:
        """Put the sequence's full computed pages into the tree, for others to share.

        Where the tree holds the same tokens already, the sequence moves to the tree's pages and
        gives its duplicates back.
        """
        full = seq.computed // self.page_size
        if self.tree is None or full <= seq.shared_pages:
            return
        own = seq.pages.view()[:full]
        tokens = seq.tokens.view()[: full * self.page_size]
        inserted = self.tree.insert(seq.namespace, tokens, own)
        self.tree.lock(inserted.node)
        if seq.node is not None:
            self.tree.unlock(seq.node)
        seq.node = inserted.node
        seq.shared_pages = full
        duplicate = own != inserted.pages
        if duplicate.any():
            self.pool.retain(inserted.pages[duplicate])
            self.pool.release(own[duplicate])
            own[:] = inserted.pages

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Let ``child`` share all pages of ``parent``; the next write of either copies."""
        self.pool.retain(parent.pages.view())
        child.pages.extend(parent.pages.view())
        child.computed = parent.computed
        child.cached_tokens = parent.cached_tokens
        child.shared_pages = parent.shared_pages
        child.node = parent.node
        if self.tree is not None and parent.node is not None:
            self.tree.lock(parent.node)

    def release(self, seq: Sequence, *, keep: bool = True) -> None:
        """Stop running: give every page back; with ``keep`` the tree keeps the full ones."""
        if keep:
            self.checkpoint(seq)
        if self.tree is not None and seq.node is not None:
            self.tree.unlock(seq.node)
        self.pool.release(seq.pages.view())
        seq.pages.truncate(0)
        seq.node = None
        seq.shared_pages = 0
        seq.computed = 0

    def usage(self) -> PageUsage:
        """Where the pages are now."""
        tree = self.tree
        evictable, protected = (tree.evictable, tree.protected) if tree else (0, 0)
        return PageUsage(
            total=self.pool.total,
            free=self.pool.free,
            evictable=evictable,
            protected=protected,
            private=self.pool.total - self.pool.free - evictable - protected,
            evicted=tree.evicted_pages if tree else 0,
        )

    def check(self, running: Iterable[Sequence]) -> None:
        """Account for every page.

        Raises:
            InvariantError: a page is lost, or counted twice.
        """
        held = {int(page) for seq in running for page in seq.pages.view()}
        if self.tree is not None:
            in_tree = {int(page) for node in self.tree.walk() for page in node.pages}
            self.tree.check(private=len(held - in_tree))
        elif self.pool.free + len(held) != self.pool.total:
            raise InvariantError(
                f"{self.pool.free} free + {len(held)} private pages != {self.pool.total}"
            )
