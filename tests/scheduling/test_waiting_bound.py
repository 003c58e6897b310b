"""No policy lets a request wait without bound, whatever else comes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from stepping import Stepper

from phloem.runtime.scheduling.sequence import Sequence

MAX_WAIT = 30.0
LONG_ENOUGH = 400
BOOK = list(range(100, 228))
COLD = list(range(300, 460))

Flood = Callable[[Stepper, int], object]
"""Sends one request that the policy likes better than a cold one of the lowest priority."""

FLOODS: dict[str, Flood] = {
    "lpm": lambda world, number: world.add([*BOOK, number]),
    "dfs-weight": lambda world, number: world.add([*BOOK, number]),
    "priority": lambda world, number: world.add([number] * 40, priority=1),
    "shortest-prefill-first": lambda world, number: world.add([number] * 8),
}


def flooded(policy: str, max_wait: float) -> tuple[Stepper, Sequence, float]:
    """More of what is liked than can be served; the cold one, and the work ahead when it is due.

    The work is in seconds, as if nothing of it were done side by side.
    """
    world = Stepper(policy, max_wait=max_wait)
    world.add(BOOK)
    world.run()
    numbers = count(1000)
    cold, ahead = None, 0.0
    for second in range(LONG_ENOUGH):
        if second == 10:
            cold = world.add(COLD)
            due = world.now + max_wait
        for _ in range(3):
            FLOODS[policy](world, next(numbers))
        if cold is not None and world.now == due:
            ahead = sum(map(service, world.scheduler.running)) + sum(
                service(seq) for seq in world.scheduler.waiting if seq.arrival <= cold.arrival
            )
            ahead += max(map(service, world.scheduler.waiting))  # the one held, whoever it is
        world.step()
    assert cold is not None
    return world, cold, ahead


def service(seq: Sequence) -> float:
    return -(-seq.uncomputed // 64) + seq.remaining


@pytest.mark.parametrize("policy", FLOODS)
def test_the_stated_bound_holds_under_a_flood(policy: str) -> None:
    world, cold, ahead = flooded(policy, MAX_WAIT)
    assert world.started[cold] - cold.arrival <= MAX_WAIT + ahead
    assert cold in world.ended


@pytest.mark.parametrize("policy", FLOODS)
def test_without_ageing_the_flood_would_starve_it(policy: str) -> None:
    world, cold, _ = flooded(policy, float("inf"))
    assert cold not in world.started


def test_nobody_overtakes_a_due_sequence_that_follows_a_running_one() -> None:
    """Though there is room beside the leader's last chunk, and others want it."""
    world = Stepper("lpm", step_tokens=64, max_wait=5)
    world.add(COLD)
    world.step()
    follower = world.add([*COLD, 1])
    world.now += 5
    others = []
    while follower not in world.started:
        others.append(world.add([7] * 20))
        world.step()
    world.run()
    assert min(world.started[each] for each in others) >= world.started[follower] > 6


def test_the_young_wait_for_all_that_are_due_however_many() -> None:
    world = Stepper("lpm", max_wait=5)
    world.add(BOOK)
    world.run()
    due = [world.add([number] * 5) for number in range(300)]
    world.now += 5
    young = world.add([*BOOK, 1])
    assert young not in world.scheduler.waiting.candidates(world.now)
    world.run()
    assert all(world.started[each] <= world.started[young] for each in due)


def test_one_that_found_no_room_is_not_overtaken_when_ranks_change() -> None:
    world = Stepper("lpm", pages=16, max_running=4)
    world.add([1] * 100, new=40)
    world.step()
    large = world.add([2] * 140, new=4)
    world.step()
    assert large not in world.started
    liked = world.add([*[1] * 64, 3], new=2)
    world.run()
    assert world.started[large] <= world.started[liked]
