"""Requests whose time is over end at once, and give back what they hold."""

from __future__ import annotations

import pytest
from harness import drain, gather, make_core, request

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.engine import EngineCore
from phloem.runtime.protocol import Constraint, Delta, ErrorInfo


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def clocked(tiny: LoadedModel, **options: object) -> tuple[EngineCore, Clock]:
    core = make_core(tiny, **options)
    core.clock = clock = Clock()
    return core, clock


def errors(deltas: list[Delta], rid: str) -> list[ErrorInfo]:
    ends = [delta.finish for delta in deltas if delta.rid == rid and delta.finish is not None]
    return [end.error for end in ends if end.error is not None]


def is_idle(core: EngineCore) -> bool:
    stats = core.stats()
    return not (stats.pages_private or stats.pages_protected or core.has_work)


@pytest.mark.parametrize("count", [1, 3])
def test_who_could_not_start_in_time_is_refused_as_overload(tiny: LoadedModel, count: int) -> None:
    core, clock = clocked(tiny, queue_timeout=2.5, max_running=1)
    first = request([5] * 20, max_new_tokens=30, ignore_eos=True)
    second = request([6] * 20, n=count)
    core.add(first)
    core.add(second)
    deltas = core.step()
    clock.now += 2.4
    deltas += core.step()
    assert not errors(deltas, second.rid)
    clock.now += 0.2
    deltas += core.step()
    refused = errors(deltas, second.rid)
    assert [error.status for error in refused] == [503] * count
    assert "2.5 s" in refused[0].message
    done = gather([first, second], [*deltas, *drain(core)])
    assert len(done[first.rid][0].token_ids) == 30
    assert is_idle(core)


def test_who_has_started_may_wait_again(tiny: LoadedModel) -> None:
    core, clock = clocked(tiny, queue_timeout=2.0, max_running=1, schedule_policy="priority")
    low = request([5] * 20, max_new_tokens=10, ignore_eos=True)
    urgent = request([6] * 20, max_new_tokens=10, ignore_eos=True, priority=1)
    core.add(low)
    deltas = core.step()
    core.add(urgent)
    deltas += core.step()
    clock.now += 5
    done = gather([low, urgent], [*deltas, *drain(core)])
    assert done[low.rid][0].retractions == 1
    assert len(done[low.rid][0].token_ids) == 10


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("count", [1, 3])
def test_a_deadline_ends_a_request_wherever_it_is(
    tiny: LoadedModel, steps: int, count: int
) -> None:
    core, clock = clocked(tiny, step_tokens=16)
    late = request(list(range(20, 70)), n=count, deadline=3.0, max_new_tokens=200, ignore_eos=True)
    other = request([9] * 20, deadline=1000.0, max_new_tokens=10, ignore_eos=True)
    core.add(late)
    core.add(other)
    deltas = [delta for _ in range(steps) for delta in core.step()]
    clock.now += 3.0
    deltas += core.step()
    ended = errors(deltas, late.rid)
    assert [error.status for error in ended] == [504] * count
    assert "3 s" in ended[0].message
    deltas += drain(core)
    assert len(gather([late, other], deltas)[other.rid][0].token_ids) == 10
    assert is_idle(core)


def test_a_deadline_ends_a_request_whose_grammar_compiles(tiny: LoadedModel) -> None:
    core, clock = clocked(tiny, queue_timeout=60.0)
    constraint = Constraint(kind="regex", text="[a-z]{200}")
    late = request([5, 6], deadline=1.0, constraint=constraint)
    core.add(late)
    clock.now += 1.0
    assert [error.status for error in errors(core.step(), late.rid)] == [504]
    assert not core.is_compiling
    assert is_idle(core)


def test_the_rid_of_an_ended_request_is_free_and_without_its_deadline(tiny: LoadedModel) -> None:
    core, clock = clocked(tiny, queue_timeout=1.0)
    core.add(request([5] * 20, rid="same", deadline=2.0))
    drain(core)
    clock.now += 0.5
    core.add(request([5] * 20, rid="same", max_new_tokens=6, ignore_eos=True))
    core.step()
    clock.now += 10
    deltas = drain(core)
    assert not errors(deltas, "same")
    assert sum(len(delta.token_ids) for delta in deltas) == 5
