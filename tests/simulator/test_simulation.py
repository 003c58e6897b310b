"""Replays: the same each time, nothing lost, and times that follow from the costs."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from phloem.radix_cache.eviction import POLICIES
from phloem.runtime.config import Policy
from phloem.runtime.simulator.costs import CPU, H100, CostModel
from phloem.runtime.simulator.report import replay
from phloem.runtime.simulator.simulation import Machine, Outcome, Simulation
from phloem.runtime.simulator.trace import Call, Segment
from phloem.runtime.simulator.workloads import AgentTree, Chat, LongPrefill, Rag, SharedPrefix

SECOND_A_STEP = CostModel(step=1.0, token=0.0, row=0.0, attended=0.0, read=0.0)
CROWDED = Machine(cost=CPU, pages=130, max_running=12, step_tokens=256)
WORKLOADS = {
    "shared prefix": SharedPrefix(sessions=60, rate=2, groups=4, system=200, output=20),
    "chat": Chat(sessions=12, rate=1, turns=4, output=30),
    "agents": AgentTree(sessions=6, rate=0.5, steps=4, tools=200, result=60, thought=20),
    "rag": Rag(sessions=40, rate=2, documents=10, document=150, output=20),
    "long prefill": LongPrefill(sessions=20, rate=1, long=800, output=20),
}


class Checked(Simulation):
    """Accounts for every page after every step."""

    def step(self) -> list[Outcome]:
        ended = super().step()
        self.scheduler.memory.check(self.scheduler.running)
        return ended


def call(at: float, *streams: int, output: int = 1, then: tuple[Call, ...] = ()) -> Call:
    """A prompt of 16 tokens for each stream."""
    prompt = tuple(Segment(stream, 16) for stream in streams)
    return Call(at, prompt, Segment(99, output), then)


def outcomes(machine: Machine, trace: Sequence[Call]) -> list[Outcome]:
    return list(Checked(machine, trace).run())


@pytest.mark.parametrize("eviction", POLICIES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_call_ends_once_and_no_page_is_lost(name: str, eviction: str) -> None:
    trace = list(WORKLOADS[name].calls())
    simulation = Checked(replace(CROWDED, eviction=eviction), trace)
    ended = Counter(id(outcome.call) for outcome in simulation.run())
    assert ended == {id(each): 1 for root in trace for each in root}
    usage = simulation.scheduler.memory.usage()
    assert usage.private == usage.protected == 0
    assert usage.evicted > 0


@pytest.mark.parametrize("policy", get_args(Policy))
def test_a_replay_is_the_same_each_time(policy: Policy) -> None:
    machine = replace(CROWDED, policy=policy, eviction="cost")
    for workload in WORKLOADS.values():
        assert replay(machine, workload.calls()) == replay(machine, workload.calls())


def test_times_are_counted_in_steps() -> None:
    machine = Machine(cost=SECOND_A_STEP, pages=64, step_tokens=32)
    [done] = outcomes(machine, [call(5.0, 1, 2, 3, output=3)])
    assert (done.arrival, done.started) == (5.0, 5.0)
    assert done.first_token == 7.0  # 48 tokens of prompt in steps of 32
    assert done.finished == 9.0


def test_a_call_comes_after_the_end_of_the_one_that_it_follows() -> None:
    machine = Machine(cost=SECOND_A_STEP, pages=64)
    first, second = outcomes(machine, [call(1.0, 1, 2, output=4, then=(call(10.0, 1, 2, 3),))])
    assert second.arrival == first.finished + 10.0
    assert second.hit == 32


def test_a_full_machine_makes_calls_wait() -> None:
    machine = Machine(cost=SECOND_A_STEP, pages=64, max_running=1)
    done = outcomes(machine, [call(0.0, number, output=5) for number in range(3)])
    assert [each.started for each in done] == [0.0, 5.0, 10.0]
    report = replay(machine, [call(0.0, number, output=5) for number in range(3)])
    assert (report.max_wait, report.mean_completion) == (10.0, 10.0)


def test_what_calls_share_is_computed_once() -> None:
    machine = Machine(cost=SECOND_A_STEP, pages=64)
    report = replay(machine, [call(float(9 * n), 1, 2, 3, 10 + n) for n in range(4)])
    assert report.hit_tokens == 3 * 48
    assert report.computed_tokens == 4 * 64 - report.hit_tokens
    assert report.hit_rate == pytest.approx(144 / 256)


def test_shortage_retracts_and_all_is_computed_in_the_end() -> None:
    trace = [call(0.0, 10 + n, output=200) for n in range(6)]
    machine = Machine(cost=SECOND_A_STEP, pages=40)
    done = outcomes(machine, trace)
    assert len(done) == 6
    assert sum(each.retractions for each in done) > 0


def test_a_call_that_can_never_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="a call of 80 tokens cannot run in memory for 48"):
        outcomes(Machine(cost=SECOND_A_STEP, pages=4), [call(0.0, 1, 2, 3, 4, output=16)])


@pytest.mark.parametrize(("sequences", "milliseconds"), [(1, 2.55), (8, 9.5), (32, 31.5)], ids=str)
def test_the_cpu_preset_gives_the_measured_decoding_times(
    sequences: int, milliseconds: float
) -> None:
    trace = [Call(0.0, (Segment(n, 255),), Segment(99, 2)) for n in range(sequences)]
    machine = Machine(cost=CPU, pages=4096, step_tokens=10_000)
    done = outcomes(machine, trace)
    last = max(each.finished for each in done) - max(each.first_token for each in done)
    assert 1000 * last == pytest.approx(milliseconds, rel=0.07)


def test_a_longer_context_costs_more_on_every_preset() -> None:
    for cost in (CPU, H100):
        short, long = (
            outcomes(Machine(cost=cost, pages=4096), [Call(0.0, (Segment(1, n),), Segment(2, 9))])
            for n in (100, 5000)
        )
        assert long[0].finished - long[0].first_token > short[0].finished - short[0].first_token


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_requests_lose_no_page_and_leave_memory_flat() -> None:
    """Tiny requests, half of them of some shared prefix, on a machine that must evict always."""
    simulation = Simulation(Machine(cost=H100, pages=512, eviction="cost"), tiny_calls(1_000_000))
    peaks = []
    for number, _ in enumerate(simulation.run(), start=1):
        if number % 100_000 == 0:
            simulation.scheduler.memory.check(simulation.scheduler.running)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    usage = simulation.scheduler.memory.usage()
    assert number == 1_000_000
    assert usage.private == usage.protected == 0
    assert usage.evicted > 100_000
    assert peaks[-1] - peaks[0] < 4, f"MB at most, after each 100,000: {peaks}"


def tiny_calls(n: int) -> Iterator[Call]:
    """One each millisecond: 16 to 48 tokens in, 1 or 2 out."""
    for index in range(n):
        shared = Segment(2**31 + index % 37, 16 * (index % 3))
        yield Call(index / 1000, (shared, Segment(index, 16)), Segment(0, 1 + index % 2))
