"""What a replay showed, in a few figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from phloem.runtime.simulator.simulation import Machine, Outcome, Simulation
from phloem.runtime.simulator.trace import Call


@dataclass(frozen=True, slots=True)
class Report:
    """Totals and times, in tokens, pages and simulated seconds.

    Attributes:
        hit_tokens: prompt tokens that were cached when their request started.
        computed_tokens: those of prompts and outputs, with what retractions made compute again.
        ttft_*: from arrival to the first token; completion_*: to the last.
        *_program: from a program's first call to the end of its last one.
        max_wait: the longest from arrival to the first span.
        seconds: from the start of the trace to the end of its last call.
    """

    requests: int
    prompt_tokens: int
    hit_tokens: int
    computed_tokens: int
    mean_completion: float
    p99_completion: float
    mean_ttft: float
    p99_ttft: float
    mean_program: float
    p99_program: float
    max_wait: float
    retractions: int
    evicted_pages: int
    steps: int
    seconds: float

    @property
    def hit_rate(self) -> float:
        return self.hit_tokens / self.prompt_tokens


def replay(machine: Machine, trace: Iterable[Call]) -> Report:
    """Run the whole trace, which must have a call, on an empty machine."""
    simulation = Simulation(machine, trace)
    return summarise(list(simulation.run()), simulation)


def summarise(outcomes: list[Outcome], simulation: Simulation) -> Report:
    completion = np.array([each.finished - each.arrival for each in outcomes])
    ttft = np.array([each.first_token - each.arrival for each in outcomes])
    programs = np.array(list(program_times(outcomes)))
    return Report(
        requests=len(outcomes),
        prompt_tokens=sum(each.call.prompt_length for each in outcomes),
        hit_tokens=sum(each.hit for each in outcomes),
        computed_tokens=simulation.computed,
        mean_completion=float(completion.mean()),
        p99_completion=float(np.percentile(completion, 99)),
        mean_ttft=float(ttft.mean()),
        p99_ttft=float(np.percentile(ttft, 99)),
        mean_program=float(programs.mean()),
        p99_program=float(np.percentile(programs, 99)),
        max_wait=max(each.started - each.arrival for each in outcomes),
        retractions=sum(each.retractions for each in outcomes),
        evicted_pages=simulation.scheduler.memory.usage().evicted,
        steps=simulation.steps,
        seconds=simulation.now,
    )


def program_times(outcomes: Iterable[Outcome]) -> Iterable[float]:
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for each in outcomes:
        first[each.program] = min(each.arrival, first.get(each.program, each.arrival))
        last[each.program] = max(each.finished, last.get(each.program, 0.0))
    return (last[program] - start for program, start in first.items())
