"""A router that follows the events knows what the tree holds, after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.radix_cache import PagePool, RadixCache
from phloem.runtime.kv_events.events import AllBlocksCleared, BlockRemoved, BlockStored, Event
from phloem.runtime.kv_events.feed import EventFeed

PAGE, PAGES = 8, 30
NAMESPACES = st.sampled_from(["", "tenant"])
RUNS = st.lists(st.tuples(st.sampled_from([1, 2]), st.sampled_from([8, 16])), max_size=5)
ACTIONS = st.lists(
    st.tuples(st.just("insert"), NAMESPACES, RUNS)
    | st.tuples(st.just("evict"), st.integers(0, 9))
    | st.tuples(st.just("reset")),
    max_size=20,
)


@dataclass
class Router:
    """What a subscriber makes of the events: by block hash, all tokens up to the block's end."""

    prefixes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def hear(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case BlockStored():
                    self.store(event)
                case BlockRemoved(block_hashes):
                    for block in block_hashes:
                        del self.prefixes[block]
                case AllBlocksCleared():
                    self.prefixes.clear()

    def store(self, event: BlockStored) -> None:
        parent = event.parent_block_hash
        prefix = () if parent is None else self.prefixes[parent]
        assert len(event.token_ids) == len(event.block_hashes) * event.block_size
        for at, block in enumerate(event.block_hashes):
            assert block not in self.prefixes
            prefix += tuple(event.token_ids[at * PAGE : (at + 1) * PAGE])
            self.prefixes[block] = prefix


@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_a_router_knows_what_is_cached(actions: list[tuple[object, ...]]) -> None:
    pool = PagePool(PAGES, PAGE)
    tree, feed, router = RadixCache(pool), EventFeed(PAGE), Router()
    tree.listeners.append(feed)
    for action in actions:
        match action:
            case ("insert", str(namespace), list(runs)):
                insert(pool, tree, namespace, runs)
            case ("evict", int(pages)):
                tree.evict(pages)
            case _:
                assert tree.reset()
        router.hear(feed.take())
        assert sorted(router.prefixes.values()) == sorted(cached(tree))


def insert(pool: PagePool, tree: RadixCache, namespace: str, runs: list[tuple[int, int]]) -> None:
    tokens = np.array([t for token, length in runs for t in [token] * length], dtype=np.int32)
    wanted = len(tokens) // PAGE
    # What the tree holds is not evicted while it is inserted again: as a request would lock it.
    match = tree.match(namespace, tokens)
    tree.lock(match.node)
    tree.evict(max(wanted - pool.free, 0))
    if wanted <= pool.free:
        pages = pool.allocate(wanted)
        tree.insert(namespace, tokens, pages)
        pool.release(pages)
    tree.unlock(match.node)


def cached(tree: RadixCache) -> list[tuple[int, ...]]:
    found = []
    above: dict[object, tuple[int, ...]] = {}
    for node in tree.walk():
        start = above.get(node.parent, ())
        tokens = tuple(node.tokens.tolist())
        found += [start + tokens[: (at + 1) * PAGE] for at in range(len(node.pages))]
        above[node] = start + tokens
    return found
