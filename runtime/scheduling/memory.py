"""The pages of each sequence: taken, shared through the radix tree, copied on write, given back.

This is the only place where a sequence's pages change hands. A running sequence holds one
reference to each page of its table, and a lock on the tree node whose pages lead the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from phloem.radix_cache import InvariantError, Match, Node, PagePool, Pins, RadixCache
from phloem.radix_cache.tiers import Tiers
from phloem.runtime.scheduling.sequence import Seen, Sequence


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy KV of page ``source`` to page ``target`` before the step writes."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class PageUsage:
    """Pages by owner: free + evictable + protected + private == total.

    Attributes:
        pinned: those of the protected that a pin reaches over, whoever else uses them.
        evicted: so far.
    """

    total: int
    free: int
    evictable: int
    protected: int
    private: int
    pinned: int
    evicted: int


MOST_PINNED = 0.5
"""Share of all pages that pins may hold: the rest is for whoever runs next."""


class SequenceMemory:
    """Pages for sequences, from a pool with (or without) a radix tree over it, and tiers below.

    With tiers, a page that a planned copy reads is held until ``step_done``: it could otherwise be
    evicted and overwritten by what the tiers load, which does not wait for the step.
    """

    def __init__(self, pool: PagePool, tree: RadixCache | None, tiers: Tiers | None = None) -> None:
        self.pool = pool
        self.tree = tree
        self.tiers = tiers
        self.pins = None if tree is None else Pins(tree, int(pool.total * MOST_PINNED))
        self._copied: list[int] = []
        self.page_size = pool.page_size

    @property
    def available(self) -> int:
        """Pages that a sequence could be given now."""
        return self.pool.free + (self.tree.evictable if self.tree else 0)

    @property
    def capacity(self) -> int:
        """Tokens that the whole pool can hold."""
        return self.pool.total * self.page_size

    def pages_for(self, tokens: int) -> int:
        return -(-tokens // self.page_size)

    def match(self, seq: Sequence) -> Match | None:
        """What the tree holds of the sequence's reusable tokens; None without a tree."""
        if self.tree is None:
            return None
        return self.tree.match(seq.namespace, seq.tokens.view()[: seq.reusable])

    def cached(self, seq: Sequence) -> Seen:
        """What the tree holds of a waiting sequence, looked up once for each state of the tree."""
        state = 0 if self.tree is None else self.tree.changes
        if seq.seen is None or seq.seen.state != state:
            seq.seen = self._look_up(seq, state)
        return seq.seen

    def _look_up(self, seq: Sequence, state: int) -> Seen:
        match = self.match(seq)
        if match is None:
            return Seen(state, 0, None)
        partial = match.partial.tokens if match.partial else 0
        return Seen(state, match.length + partial, match.node)

    def cached_length(self, seq: Sequence) -> int:
        """How many tokens of a waiting sequence the tree would spare."""
        return self.cached(seq).tokens

    def prefetch(self, seq: Sequence) -> None:
        """Let lower tiers prepare for the time when the sequence is attached."""
        if self.tiers is not None:
            self.tiers.prefetch(seq.namespace, seq.tokens.view()[: seq.reusable])

    def attach(self, seq: Sequence) -> bool:
        """Begin to run: take the cached prefix, if any, as the head of the page table.

        False, and nothing taken, while lower tiers have more of it than was loaded at once.
        """
        if self.tiers is not None and not self.tiers.restore(
            seq.namespace, seq.tokens.view()[: seq.reusable]
        ):
            return False
        match = self.match(seq)
        if match is not None:
            self._take_match(seq, match)
        return True

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
        return self.pool.refcount(int(page)) - self._copied.count(int(page)) > 1

    def _replace_last(self, seq: Sequence, fresh: int) -> PageCopy:
        table = seq.pages.view()
        at = seq.computed // self.page_size
        shared = int(table[at])
        table[at] = fresh
        self._copied.append(shared)  # with the sequence's reference
        if self.tiers is None:
            self.step_done()
        return PageCopy(shared, fresh)

    def step_done(self) -> None:
        """The planned copies were made, or will never be."""
        if self._copied:
            self.pool.release(np.array(self._copied, dtype=np.int32))
            self._copied.clear()

    def _make_free(self, wanted: int) -> bool:
        """Evict what is missing; pins hold until nothing else is left."""
        self._evict_to(wanted)
        while self.pool.free < wanted and self.drop_first_pin():
            self._evict_to(wanted)
        return self.pool.free >= wanted

    def _evict_to(self, wanted: int) -> None:
        missing = wanted - self.pool.free
        if missing > 0 and self.tree is not None:
            self.tree.evict(missing)

    def drop_first_pin(self) -> bool:
        """Make evictable what the pin that ends first has kept; False if there is none."""
        return self.pins is not None and self.pins.drop_first()

    def expire_pins(self) -> None:
        """Let go of what was kept for a time that is over."""
        if self.pins is not None:
            self.pins.expire()

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
        inserted = self.tree.insert(seq.namespace, tokens, own, seq.request.priority)
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

    def release(self, seq: Sequence, *, keep: bool = True, pin_ttl: float = 0.0) -> None:
        """Stop running: give every page back; with ``keep`` the tree keeps the full ones.

        These are pinned for ``pin_ttl`` seconds.
        """
        if keep:
            self.checkpoint(seq)
        if pin_ttl and self.pins is not None and seq.node is not None:
            self.pins.place(seq.node, pin_ttl)
        if self.tree is not None and seq.node is not None:
            self.tree.unlock(seq.node)
        self.pool.release(seq.pages.view())
        seq.pages.truncate(0)
        seq.node = None
        seq.seen = None
        seq.shared_pages = 0
        seq.computed = 0

    def own_tokens(self, seq: Sequence) -> int:
        """Computed tokens of a running sequence that no other one holds: lost if it has to stop."""
        if seq.node is None:
            return seq.computed
        return seq.computed - self.page_size * held_pages(seq.node, users=2)

    def flush(self) -> bool:
        """Empty the tree, and what this process alone holds below; False if a page is in use."""
        if self.pins is not None:
            self.pins.clear()
        return self.tree is None or self.tree.reset()

    def close(self) -> None:
        """Let lower tiers keep what the tree holds, before the process ends."""
        if self.tiers is not None:
            self.tiers.close()

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
            pinned=self.pins.pages if self.pins is not None else 0,
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


def held_pages(node: Node, users: int) -> int:
    """Pages on the path from the root to ``node`` that at least so many running sequences use."""
    count, step = 0, node
    while step.parent is not None:
        count += len(step.pages) if step.locks >= users else 0
        step = step.parent
    return count
