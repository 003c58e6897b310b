"""Which waiting sequence each policy starts first, on a real tree."""

from __future__ import annotations

import pytest
from stepping import Stepper

from phloem.runtime.scheduling.sequence import Sequence

BOOK = list(range(100, 228))  # eight pages
OTHER = list(range(300, 364))  # four pages


def order(world: Stepper) -> list[Sequence]:
    return list(world.scheduler.waiting.candidates(world.now))


def warm(world: Stepper, *prompts: list[int]) -> None:
    for prompt in prompts:
        world.add(prompt, new=1)
    world.run()


def test_fcfs_goes_by_arrival_alone() -> None:
    world = Stepper("fcfs")
    warm(world, BOOK)
    cold = world.add([1, 2, 3])
    hot = world.add([*BOOK, 5], priority=7)
    assert order(world) == [cold, hot]


def test_lpm_prefers_the_longest_cached_prefix() -> None:
    world = Stepper("lpm")
    warm(world, BOOK, OTHER)
    cold, short, long = world.add([1]), world.add([*OTHER, 1]), world.add([*BOOK, 1])
    assert order(world) == [long, short, cold]


def test_lpm_sees_what_was_cached_since_a_sequence_was_queued() -> None:
    world = Stepper("lpm", max_running=1)
    first = world.add(BOOK)
    cold, later = world.add(OTHER), world.add([*BOOK, 1])
    assert order(world) == [first, cold, later]
    world.step()
    assert order(world) == [later, cold]


def test_shortest_prefill_counts_what_is_not_cached() -> None:
    world = Stepper("shortest-prefill-first")
    warm(world, BOOK)
    long, short, cached = world.add(OTHER), world.add([1] * 20), world.add([*BOOK, 1])
    assert order(world) == [cached, short, long]


def test_dfs_weight_visits_the_fullest_subtree_first_and_its_depths_before_its_top() -> None:
    world = Stepper("dfs-weight")
    warm(world, BOOK, [*BOOK[:32], *OTHER], OTHER)
    lone = world.add([*OTHER, 9])
    top = world.add([*BOOK[:32], 9])
    few = world.add([*BOOK[:32], *OTHER, 9])
    many = [world.add([*BOOK, 9]), world.add([*BOOK, 8])]
    assert order(world) == [*many, few, top, lone]


def test_priority_prefers_the_larger_and_then_the_earlier() -> None:
    world = Stepper("priority")
    low, first, second = world.add([1]), world.add([2], priority=5), world.add([3], priority=5)
    assert order(world) == [first, second, low]


@pytest.mark.parametrize(
    "policy", ["fcfs", "lpm", "dfs-weight", "priority", "shortest-prefill-first"]
)
def test_who_is_due_goes_first_and_in_the_order_of_arrival(policy: str) -> None:
    world = Stepper(policy, max_wait=10)
    warm(world, BOOK)
    aged = [world.add(OTHER), world.add([*BOOK, 1], priority=-1)]
    world.now += 10
    young = world.add([*BOOK, 2], priority=9)
    assert order(world) == [*aged, young]
