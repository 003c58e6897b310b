from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.scheduling.policy import order

waiting_sets = st.lists(
    st.tuples(st.floats(0, 100), st.integers(-2, 2), st.integers(0, 500)), max_size=40
)


def sequences(specs: list[tuple[float, int, int]]) -> list[Any]:
    """Plain records with the three things that the order depends on."""
    return [
        SimpleNamespace(arrival=arrival, request=SimpleNamespace(priority=priority), cached=cached)
        for arrival, priority, cached in specs
    ]


def cached(seq: Any) -> int:
    return int(seq.cached)


@given(waiting_sets, st.sampled_from(["fcfs", "lpm"]), st.floats(0, 100), st.floats(0, 50))
def test_orders_everyone_once_and_the_aged_first_by_arrival(
    specs: list[tuple[float, int, int]], policy: Any, now: float, max_wait: float
) -> None:
    waiting = sequences(specs)
    ordered = order(policy, waiting, cached, now, max_wait)
    assert sorted(map(id, ordered)) == sorted(map(id, waiting))
    aged = [seq for seq in ordered if now - seq.arrival >= max_wait]
    assert ordered[: len(aged)] == aged
    assert [seq.arrival for seq in aged] == sorted(seq.arrival for seq in aged)


def test_lpm_prefers_the_longest_cached_prefix_within_a_priority() -> None:
    short, long, urgent = sequences([(0, 0, 10), (1, 0, 90), (2, 1, 0)])
    assert order("lpm", [short, long, urgent], cached, 3, 60) == [urgent, long, short]


def test_fcfs_ignores_the_cache() -> None:
    first, second = sequences([(0, 0, 0), (1, 0, 90)])
    assert order("fcfs", [second, first], cached, 3, 60) == [first, second]
