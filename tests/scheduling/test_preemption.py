"""Larger priority takes the place, the pages or the tokens of smaller priority that runs."""

from __future__ import annotations

import pytest
from stepping import Stepper

from phloem.runtime.scheduling.sequence import Sequence


def waiting(world: Stepper) -> list[Sequence]:
    return list(world.scheduler.waiting)


def test_a_place_is_taken_from_the_lowest_that_loses_least() -> None:
    world = Stepper("priority", max_running=3)
    high, low_long, low_short = (
        world.add([1] * 20, new=30, priority=5),
        world.add([2] * 40, new=30),
        world.add([3] * 10, new=30),
    )
    world.step()
    urgent = world.add([4] * 10, priority=9)
    schedule = world.step()
    assert schedule.retracted == 1
    assert world.started[urgent] == 1
    assert waiting(world) == [low_short]
    assert low_short.retractions == 1
    assert {high, low_long} < set(world.scheduler.running)
    world.run()
    assert len(low_short.tokens) == 10 + 30


def test_pages_are_taken_from_no_more_than_needed() -> None:
    world = Stepper("priority", pages=16, max_running=8)
    lows = [world.add([i] * 40, new=8) for i in range(4)]
    world.step()
    world.step()
    assert len(world.scheduler.running) == 4
    urgent = world.add([9] * 60, new=8, priority=1)
    world.step()
    assert urgent in world.started
    assert 1 <= sum(low.retractions for low in lows) < 4
    world.run()
    assert all(low in world.ended for low in lows)


def test_a_long_prefill_yields_its_tokens_and_keeps_what_it_computed() -> None:
    world = Stepper("priority", step_tokens=32)
    low = world.add(list(range(100, 400)))
    talker = world.add([1, 2, 3], new=40)
    world.step()
    world.step()
    computed = low.computed
    urgent = world.add([7] * 20, new=1, priority=1)
    world.step()
    assert world.ended[urgent] == world.now
    assert talker.retractions == 0
    world.step()
    assert low.retractions == 1
    assert low.computed >= computed // 16 * 16
    world.run()


@pytest.mark.parametrize("policy", ["fcfs", "lpm", "priority"])
def test_equals_are_never_preempted(policy: str) -> None:
    world = Stepper(policy, max_running=1)
    first = world.add([1] * 10, new=20, priority=3)
    world.step()
    later = world.add([2] * 10, priority=3 if policy == "priority" else 9)
    world.run()
    assert first.retractions == 0
    assert world.started[later] >= world.ended[first]


def test_none_is_stopped_in_vain() -> None:
    world = Stepper("priority", max_running=2)
    low, high = world.add([1] * 10, new=20), world.add([2] * 10, new=20, priority=5)
    world.step()
    urgent = world.add([3] * 10, priority=4, n=2)
    world.run()
    assert low.retractions == high.retractions == 0
    assert world.started[urgent] >= world.ended[high]


def test_who_was_due_is_not_preempted() -> None:
    world = Stepper("priority", max_running=1, max_wait=5)
    world.add([1] * 10, new=12, priority=1)
    low = world.add([2] * 10, new=12)
    while low not in world.started:
        world.add([3] * 5, new=3, priority=1)
        world.step()
    urgent = world.add([4] * 10, priority=9)
    world.run()
    assert low.retractions == 0
    assert world.started[urgent] >= world.ended[low]


def test_nobody_follows_a_leader_of_lower_priority() -> None:
    prompt = list(range(100, 260))
    world = Stepper("priority", step_tokens=48)
    leader = world.add(prompt)
    world.step()
    urgent = world.add([*prompt, 1], new=1, priority=1)
    world.step()
    assert urgent in world.started
    assert leader.retractions == 1
    world.run()
