"""Each policy evicts in its order: against a scan of all leaves, and on small stories."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from radix_helpers import PAGE, SmallCache, spell

from phloem.radix_cache import Node, RadixCache
from phloem.radix_cache.eviction import ATTENTION_DEPTH, POLICIES
from phloem.runtime.config import Eviction

ORDERS: dict[str, Callable[[Node], tuple[float, ...]]] = {
    "lru": lambda node: (node.last_access,),
    "fifo": lambda node: (node.created,),
    "lfu": lambda node: (node.hits, node.last_access),
    "slru": lambda node: (0 if node.hits < 2 else 1, node.last_access),
    "priority": lambda node: (node.priority, node.last_access),
    "cost": lambda node: (
        node.age + max(1, node.hits) * (ATTENTION_DEPTH + node.depth) / ATTENTION_DEPTH,
        node.last_access,
    ),
}

WORDS = st.text("abc", min_size=1, max_size=6)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), WORDS, st.integers(0, 2)),
        st.tuples(st.just("match"), WORDS, st.just(0)),
        st.tuples(st.just("lock"), WORDS, st.just(0)),
        st.tuples(st.just("unlock"), st.just(""), st.just(0)),
        st.tuples(st.just("evict"), st.just(""), st.integers(1, 3)),
    ),
    max_size=40,
)


def cache(policy: str) -> SmallCache:
    small = SmallCache(64)
    small.tree = RadixCache(small.pool, policy, small.clock)
    return small


def put(small: SmallCache, word: str, priority: int = 0) -> None:
    """Insert a word, with room made for it, as a request of this priority."""
    small.clock.tick()
    small.tree.evict(len(word) - small.pool.free)
    pages = small.pool.allocate(min(len(word), small.pool.free))
    small.tree.insert("", spell(word[: len(pages)]), pages, priority)
    small.pool.release(pages)


def evict_one(small: SmallCache, order: Callable[[Node], tuple[float, ...]]) -> None:
    """Evict a page: it must be the last one of a leaf that no other precedes."""
    ends = {int(n.pages[-1]): n for n in small.tree.walk() if n.is_evictable_leaf}
    keys = {page: order(node) for page, node in ends.items()}
    assert small.tree.evict(1) == bool(ends)
    gone = [page for page in ends if small.pool.refcount(page) == 0]
    assert len(gone) == bool(ends)
    assert [keys[page] for page in gone] == sorted(keys.values())[:1]


@pytest.mark.parametrize("policy", ORDERS)
@given(actions=ACTIONS)
def test_every_page_that_goes_is_the_first_of_a_full_scan(
    policy: str, actions: list[tuple[str, str, int]]
) -> None:
    small, locked = cache(policy), []
    for action, word, number in actions:
        if action == "put":
            put(small, word, number)
        elif action == "match":
            small.match(word)
        elif action == "lock":
            locked.append(small.match(word).node)
            small.tree.lock(locked[-1])
        elif action == "unlock" and locked:
            small.tree.unlock(locked.pop(0))
        for _ in range(number if action == "evict" else 0):
            evict_one(small, ORDERS[policy])
        small.tree.check(0)


def test_the_names_are_those_of_the_configuration() -> None:
    assert set(get_args(Eviction)) == set(POLICIES) == set(ORDERS)


def test_fifo_ignores_uses() -> None:
    small = cache("fifo")
    for word in ("a", "b"):
        put(small, word)
    small.match("a")
    small.tree.evict(1)
    assert small.words() == {"b"}


def test_fifo_remembers_when_a_run_was_added_that_was_split() -> None:
    small = cache("fifo")
    for word in ("ab", "c", "ad"):  # "a" becomes a node of its own when "ad" comes
        put(small, word)
    other = small.match("c").node
    small.tree.lock(other)
    small.tree.evict(2)
    small.tree.unlock(other)
    assert small.words() == {"a", "c"}
    small.tree.evict(1)
    assert small.words() == {"c"}


def turn_over(small: SmallCache) -> None:
    """As if all pages had been replaced."""
    small.tree.evicted_pages += small.pool.total


@pytest.mark.parametrize("policy", ["lfu", "slru", "cost"])
def test_what_is_used_for_long_outlives_what_came_later(policy: str) -> None:
    small = cache(policy)
    for word in ("ab", "ac", "ad"):
        put(small, word)
        turn_over(small)
    for word in "xy":
        put(small, word)
    small.tree.evict(5)
    assert small.words() == {"a"}


@pytest.mark.parametrize("policy", ["lfu", "slru", "cost"])
def test_looking_is_no_use(policy: str) -> None:
    small = cache(policy)
    put(small, "ab")
    turn_over(small)
    for word in ("ac", "x"):
        put(small, word)
    for _ in range(9):
        turn_over(small)
        small.match("x")
    small.match("a")
    small.tree.evict(3)
    assert small.words() == {"a"}


def test_uses_within_a_turnover_count_as_one() -> None:
    small = cache("lfu")
    for tail in "bcde":
        put(small, "a" + tail)
    assert small.match("a").node.hits == 1


def test_the_lowest_priority_goes_first_whatever_its_age() -> None:
    small = cache("priority")
    for word, priority in (("a", 1), ("b", 0), ("c", 2)):
        put(small, word, priority)
    small.match("b")
    small.tree.evict(1)
    assert small.words() == {"a", "c"}
    small.tree.evict(1)
    assert small.words() == {"c"}


def test_a_prefix_has_the_highest_priority_of_what_was_below_it() -> None:
    small = cache("priority")
    for word, priority in (("ab", 0), ("ac", 5), ("x", 3)):
        put(small, word, priority)
    small.tree.evict(3)  # "b", then "x", then "c"
    assert small.words() == {"a"}


def test_cost_keeps_what_is_dear_to_recompute() -> None:
    small = cache("cost")
    put(small, "abc")
    put(small, "x")
    small.tree.evict(1)
    assert small.words() == {"abc"}


def test_former_popularity_wears_off() -> None:
    small = cache("cost")
    for tail in "bcde":
        put(small, "a" + tail)
        turn_over(small)
    small.tree.evict(4)
    put(small, "x")
    small.tree.evict(1)
    assert small.words() == {"a"}  # of four hits
    for letter in "yzuvw":
        put(small, letter)
        turn_over(small)
    small.tree.evict(3)
    assert small.words() == {"u", "v", "w"}


def test_depth_is_counted_from_the_root() -> None:
    small = cache("cost")
    for word in ("abc", "abd", "abde"):
        put(small, word)
    depths = {chr(n.tokens[0]): n.depth for n in small.tree.walk()}
    assert depths == {"a": 2 * PAGE, "c": 3 * PAGE, "d": 3 * PAGE, "e": 4 * PAGE}
