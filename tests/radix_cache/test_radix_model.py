"""Requests live on a cache as a scheduler's do; an oracle says what must come out.

Beside the accounts, the contents are followed: what was computed into each page. No request
may ever see a page that does not hold its own tokens' prefix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from radix_helpers import Clock, ids
from radix_oracle import Oracle, Prefix

from phloem.radix_cache import Match, Node, PagePool, Pins, RadixCache

NAMESPACES = st.sampled_from(["", "tenant"])
RUNS = st.tuples(st.sampled_from([1, 256, 2**31 - 1]), st.integers(1, 20))
TOKENS = st.lists(RUNS, min_size=1, max_size=4).map(
    lambda runs: tuple(token for token, length in runs for _ in range(length))
)


@dataclass(eq=False)
class Request:
    namespace: str
    tokens: tuple[int, ...]
    pages: list[int]
    node: Node
    locked: int
    """Tokens that the lock on ``node`` covers."""


def array(tokens: tuple[int, ...]) -> np.ndarray:
    return np.array(tokens, dtype=np.int32)


class CacheMachine(RuleBasedStateMachine):
    requests = Bundle("requests")

    @initialize(page_size=st.sampled_from([1, 8, 16]), num_pages=st.integers(2, 40))
    def begin(self, page_size: int, num_pages: int) -> None:
        self.page_size = page_size
        self.clock = Clock()
        self.pool = PagePool(num_pages, page_size)
        self.tree = RadixCache(self.pool, clock=self.clock)
        self.pins = Pins(self.tree, num_pages)
        self.oracle = Oracle(page_size)
        self.pinned: dict[Prefix, float] = {}
        self.live: list[Request] = []
        self.copying: set[int] = set()
        self.content: dict[int, Prefix] = {}

    @rule(target=requests, namespace=NAMESPACES, tokens=TOKENS)
    def start(self, namespace: str, tokens: tuple[int, ...]) -> object:
        """Match all but the last token, take the rest fresh, copy the head of a diverging page."""
        match = self.match(namespace, tokens[:-1])
        self.tree.lock(match.node)
        self.oracle.lock(namespace, tokens[: match.length], +1)
        self.pool.retain(match.pages)
        request = Request(namespace, tokens, match.pages.tolist(), match.node, match.length)
        self.live.append(request)
        if not self.fill(request, match):
            self.stop(request)
            return multiple()
        return request

    @rule(request=requests, tokens=TOKENS)
    def decode(self, request: Request, tokens: tuple[int, ...]) -> None:
        """Compute further tokens, as far as there is memory."""
        before = request.tokens
        request.tokens += tokens
        if not self.fill(request):
            request.tokens = before

    @rule(request=requests)
    def checkpoint(self, request: Request) -> None:
        """Insert the whole pages, go over to the tree's, lock the deeper node."""
        whole = len(request.tokens) // self.page_size
        tokens, own = request.tokens[: whole * self.page_size], ids(*request.pages[:whole])
        known = len(self.oracle.match(request.namespace, tokens, self.clock.tick()))
        expected = self.oracle.insert(request.namespace, tokens, own.tolist(), self.clock.now)

        inserted = self.tree.insert(request.namespace, array(tokens), own)

        assert inserted.known == known * self.page_size
        assert inserted.pages.tolist() == expected
        self.tree.lock(inserted.node)
        self.tree.unlock(request.node)
        self.oracle.lock(request.namespace, tokens, +1)
        self.oracle.lock(request.namespace, request.tokens[: request.locked], -1)
        self.pool.retain(inserted.pages)
        self.pool.release(own)
        request.pages[:whole] = expected
        request.node, request.locked = inserted.node, len(tokens)

    @rule(target=requests, parent=requests)
    def fork(self, parent: Request) -> object:
        """Share the whole pages of another request; recompute the rest."""
        whole = len(parent.tokens) // self.page_size
        pages = parent.pages[:whole]
        self.pool.retain(ids(*pages))
        self.tree.lock(parent.node)
        self.oracle.lock(parent.namespace, parent.tokens[: parent.locked], +1)
        child = Request(parent.namespace, parent.tokens, pages, parent.node, parent.locked)
        self.live.append(child)
        if not self.fill(child):
            self.stop(child)
            return multiple()
        return child

    @rule(request=consumes(requests))
    def finish(self, request: Request) -> None:
        self.checkpoint(request)
        self.stop(request)

    @rule(request=consumes(requests))
    def abort(self, request: Request) -> None:
        self.stop(request)

    @rule(request=requests, seconds=st.integers(0, 20))
    def pin(self, request: Request, seconds: int) -> None:
        """Keep what the request shares; a longer pin takes up those on its way."""
        self.pins.place(request.node, seconds)
        end = self.clock.now + seconds
        key = request.namespace, request.tokens[: request.locked]
        if not key[1] or self.pinned.get(key, -1) >= end:
            return
        self.oracle.lock(*key, +1)
        for prefix in [*self.oracle.prefixes(*key)]:
            if self.pinned.get(prefix, end + 1) <= end:
                self.unpin(prefix)
        self.pinned[key] = end

    @rule(seconds=st.integers(0, 5))
    def expire(self, seconds: int) -> None:
        self.clock.now += seconds
        self.pins.expire()
        for prefix, end in list(self.pinned.items()):
            if end <= self.clock.now:
                self.unpin(prefix)

    @rule()
    def drop_first_pin(self) -> None:
        assert self.pins.drop_first() == bool(self.pinned)
        if self.pinned:
            self.unpin(min(self.pinned, key=lambda prefix: self.pinned[prefix]))

    def unpin(self, prefix: Prefix) -> None:
        del self.pinned[prefix]
        self.oracle.lock(*prefix, -1)

    @rule(namespace=NAMESPACES, tokens=TOKENS)
    def look(self, namespace: str, tokens: tuple[int, ...]) -> None:
        self.match(namespace, tokens)

    @rule(n=st.integers(0, 40))
    def evict(self, n: int) -> None:
        free, evicted = self.pool.free, self.tree.evicted_pages
        expected = self.oracle.evict(n, self.held())
        assert self.tree.evict(n) == expected
        assert self.pool.free == free + expected
        assert self.tree.evicted_pages == evicted + expected

    @rule()
    def reset(self) -> None:
        unlocked = not self.oracle.count(locked=True)
        assert self.tree.reset() == unlocked
        if unlocked:
            self.oracle.entries.clear()

    @invariant()
    def accounts_add_up(self) -> None:
        held, cached = self.held(), self.cached_pages()
        assert self.tree.evictable == self.oracle.count(locked=False)
        assert self.tree.protected == self.oracle.count(locked=True)
        assert self.tree.cached_tokens == len(cached) * self.page_size
        assert self.pool.free == self.pool.total - len(held | cached)
        self.tree.check(private=len(held - cached))

    @invariant()
    def pins_hold_what_they_are_to(self) -> None:
        pages = {page for prefix in self.pinned for page in self.oracle.prefixes(*prefix)}
        assert self.pins.pages == len(pages)
        assert len(self.pins) == len(self.pinned)

    @invariant()
    def references_are_those_of_holders(self) -> None:
        cached = self.cached_pages()
        for page in range(self.pool.total):
            tables = sum(request.pages.count(page) for request in self.live)
            assert self.pool.refcount(page) == tables + (page in cached)

    @invariant()
    def the_tree_holds_what_the_oracle_holds(self) -> None:
        found = {}
        for node in self.tree.walk():
            start = self.tokens_above(node)
            for at, page in enumerate(node.pages):
                end = (at + 1) * self.page_size
                found[node.namespace, start + tuple(node.tokens[:end].tolist())] = int(page)
        assert found == {prefix: entry.page for prefix, entry in self.oracle.entries.items()}

    @invariant()
    def pages_hold_what_they_are_used_for(self) -> None:
        for prefix, entry in self.oracle.entries.items():
            assert self.content[entry.page] == prefix
        for request in self.live:
            for at, page in enumerate(request.pages):
                end = (at + 1) * self.page_size
                assert self.content[page] == (request.namespace, request.tokens[:end])

    def match(self, namespace: str, tokens: tuple[int, ...]) -> Match:
        expected = self.oracle.match(namespace, tokens, self.clock.tick())
        match = self.tree.match(namespace, array(tokens))
        assert match.pages.tolist() == expected
        assert match.length == len(expected) * self.page_size
        head = match.length + (match.partial.tokens if match.partial else 0)
        assert head == self.oracle.longest_head(namespace, tokens)
        if match.partial:
            assert 0 < match.partial.tokens < self.page_size
            assert self.content[match.partial.page][1][:head] == tokens[:head]
        return match

    def fill(self, request: Request, match: Match | None = None) -> bool:
        """Allocate what the request's table lacks and compute it; False if memory is short."""
        wanted = -(-len(request.tokens) // self.page_size) - len(request.pages)
        partial = match.partial if match is not None else None
        self.copying = {partial.page} if partial else set()
        self.pool.retain(ids(*self.copying))
        if self.pool.free < wanted:
            self.evict(wanted - self.pool.free)
        enough = self.pool.free >= wanted
        if enough:
            request.pages += self.pool.allocate(wanted).tolist()
        if enough and partial and match:
            head = match.length + partial.tokens
            assert self.content[partial.page][1][:head] == request.tokens[:head]
        self.pool.release(ids(*self.copying))
        self.copying = set()
        if enough:
            self.compute(request)
        return enough

    def compute(self, request: Request) -> None:
        for at, page in enumerate(request.pages):
            if self.pool.refcount(page) == 1:
                end = (at + 1) * self.page_size
                self.content[page] = (request.namespace, request.tokens[:end])

    def stop(self, request: Request) -> None:
        self.live.remove(request)
        self.tree.unlock(request.node)
        self.oracle.lock(request.namespace, request.tokens[: request.locked], -1)
        self.pool.release(ids(*request.pages))

    def held(self) -> set[int]:
        return {page for request in self.live for page in request.pages} | self.copying

    def cached_pages(self) -> set[int]:
        return {entry.page for entry in self.oracle.entries.values()}

    def tokens_above(self, node: Node) -> tuple[int, ...]:
        assert node.parent is not None
        if node.parent.is_root:
            return ()
        return self.tokens_above(node.parent) + tuple(node.parent.tokens.tolist())


TestCacheModel = CacheMachine.TestCase
TestCacheModel.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
