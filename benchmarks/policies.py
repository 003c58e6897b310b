"""Eviction and scheduling policies on simulated traffic, and what exact page heads save.

    python benchmarks/policies.py --policies lpm               # every eviction
    python benchmarks/policies.py --evictions lru cost --load 2.5    # where calls have to wait
    python benchmarks/policies.py --mooncake conversation_trace.jsonl --load 0.2

Prints Markdown. Replays the real scheduler and tree over a cost model: see runtime/simulator. The
optimum is Belady's for the calls in the order of their arrival, in whole pages: what no eviction
could beat if calls ran one after the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import get_args

from phloem.radix_cache import Match, RadixCache
from phloem.radix_cache.runs import Tokens
from phloem.runtime.config import Eviction, Policy
from phloem.runtime.simulator.costs import CPU, H100
from phloem.runtime.simulator.mooncake import read_mooncake
from phloem.runtime.simulator.optimum import most_hit_tokens
from phloem.runtime.simulator.report import Report, summarise
from phloem.runtime.simulator.simulation import Machine, Outcome, Simulation
from phloem.runtime.simulator.trace import Call
from phloem.runtime.simulator.workloads import (
    AgentTree,
    Chat,
    LongPrefill,
    Rag,
    SharedPrefix,
)


@dataclass(frozen=True)
class Case:
    """A trace, and a machine whose memory is too small for it by half or more."""

    name: str
    calls: list[Call]
    machine: Machine


class WholePages(RadixCache):
    """The tree without heads of diverging pages."""

    def match(self, namespace: str, tokens: Tokens) -> Match:
        return replace(super().match(namespace, tokens), partial=None)


def main() -> None:
    options = parse()
    found = list(cases(options))
    show(EVICTION_HEAD, rows(found, options.policies, options.evictions))
    if options.mooncake is None:
        show(HEADS_HEAD, heads([case for case in found if case.name in ("rag", "chat")]))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--machine", choices=("cpu", "h100"), default="h100")
    parser.add_argument("--max-wait", type=float, default=5.0, help="seconds; see EngineConfig")
    parser.add_argument("--load", type=float, default=1.0, help="arrivals, times the usual")
    parser.add_argument("--policies", nargs="+", choices=get_args(Policy), default=get_args(Policy))
    parser.add_argument(
        "--evictions", nargs="+", choices=get_args(Eviction), default=get_args(Eviction)
    )
    parser.add_argument("--mooncake", type=Path, help="a trace file to replay instead")
    parser.add_argument("--requests", type=int, default=2000, help="of that file")
    parser.add_argument("--pages", type=int, default=100_000, help="of memory for that file")
    return parser.parse_args()


def cases(options: argparse.Namespace) -> Iterator[Case]:
    small = options.machine == "cpu"
    machine = Machine(
        cost=CPU if small else H100,
        pages=0,
        step_tokens=512 if small else 4096,
        max_wait=options.max_wait,
    )
    if options.mooncake is not None:
        lines = islice(read_mooncake(options.mooncake), options.requests)
        calls = [replace(call, at=call.at / options.load) for call in lines]
        yield Case(options.mooncake.stem, calls, replace(machine, pages=options.pages))
        return
    speed = options.load * (0.05 if small else 1.0)
    for name, workload, pages in (
        ("shared prefix", SharedPrefix(sessions=3000, rate=12 * speed, groups=64), 3000),
        ("chat", Chat(sessions=400, rate=2 * speed), 6000),
        ("agent tree", AgentTree(sessions=120, rate=0.5 * speed), 6000),
        ("rag", Rag(sessions=2500, rate=6 * speed, drift=800), 6000),
        ("long prefill", LongPrefill(sessions=800, rate=4 * speed), 9000),
    ):
        yield Case(name, list(workload.calls()), replace(machine, pages=pages))


EVICTION_HEAD = (
    "trace",
    "scheduling",
    "eviction",
    "hit rate",
    "of optimum",
    "computed tokens",
    "mean s",
    "p99 s",
    "TTFT p99 s",
    "program mean s",
    "program p99 s",
    "max wait s",
    "retracted",
)


def rows(
    found: Sequence[Case], policies: Sequence[Policy], evictions: Sequence[Eviction]
) -> Iterator[Sequence[object]]:
    """One for each case, scheduling and eviction."""
    for case in found:
        optimum = 0
        for policy in policies:
            for eviction in evictions:
                outcomes, report = replay(case, policy=policy, eviction=eviction)
                optimum = optimum or ceiling(outcomes, case.machine)
                yield row(case.name, policy, eviction, report, optimum)


def replay(case: Case, **management: object) -> tuple[list[Outcome], Report]:
    # The names are those of Machine's fields, and so are their types.
    machine = replace(case.machine, **management)  # type: ignore[arg-type]
    simulation = Simulation(machine, case.calls)
    outcomes = list(simulation.run())
    return outcomes, summarise(outcomes, simulation)


def ceiling(outcomes: Sequence[Outcome], machine: Machine) -> int:
    calls = [each.call for each in sorted(outcomes, key=lambda each: each.arrival)]
    return most_hit_tokens(calls, machine.pages, machine.page_size)


def row(
    name: str, policy: Policy, eviction: Eviction, report: Report, optimum: int
) -> list[object]:
    return [
        name,
        policy,
        eviction,
        f"{report.hit_rate:.2%}",
        f"{report.hit_tokens / optimum:.2%}",
        f"{report.computed_tokens:,}",
        f"{report.mean_completion:.2f}",
        f"{report.p99_completion:.2f}",
        f"{report.p99_ttft:.2f}",
        f"{report.mean_program:.2f}",
        f"{report.p99_program:.2f}",
        f"{report.max_wait:.2f}",
        report.retractions,
    ]


HEADS_HEAD = ("trace", "page size", "whole pages", "exact", "more hit tokens", "more a request")


def heads(found: Sequence[Case]) -> Iterator[Sequence[object]]:
    """Hit tokens with whole pages only, and to the token, at the same memory."""
    for case in found:
        for page_size in (16, 64):
            pages = case.machine.pages * case.machine.page_size // page_size
            size = {"pages": pages, "page_size": page_size}
            _, whole = replay(case, make_tree=WholePages, **size)
            _, exact = replay(case, **size)
            more = exact.hit_tokens - whole.hit_tokens
            yield [
                case.name,
                page_size,
                f"{whole.hit_tokens:,}",
                f"{exact.hit_tokens:,}",
                f"{more / whole.hit_tokens:+.2%}",
                f"{more / exact.requests:.1f}",
            ]


def show(head: Sequence[str], body: Iterator[Sequence[object]]) -> None:
    """Print a Markdown table, each row as it comes."""
    for line in (head, ["---"] * len(head)):
        print(f"| {' | '.join(line)} |")
    for line in body:
        print(f"| {' | '.join(map(str, line))} |", flush=True)
    print()


if __name__ == "__main__":
    main()
