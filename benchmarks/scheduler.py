"""What the scheduler's choice of one step costs, by policy and number of waiting requests.

No model runs: 32 sequences decode, the prompts of those that wait have 1,024 tokens, the first
896 of them one of 64 documents, of which the cache holds some. Median microseconds of a call of
``Scheduler.schedule``

* full: every place is taken;
* no pages: places are free, but not the pages that the next sequence needs;
* one ends: in each step one ends and one starts, so that the tree has changed;

and of ``Scheduler.add``.

    python benchmarks/scheduler.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any, cast

import numpy as np

from phloem.radix_cache import PagePool, RadixCache
from phloem.runtime.protocol import GenerateRequest, SamplingParams
from phloem.runtime.scheduling.buffer import IntBuffer
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.policy import RULES
from phloem.runtime.scheduling.scheduler import Limits, Scheduler
from phloem.runtime.scheduling.sequence import Sequence

PAGE_SIZE = 16
RUNNING = 32
DOCUMENTS, DOCUMENT, OWN = 64, 896, 128
PAGES = 1 << 16
NEVER = float("inf")

random = np.random.default_rng(0)
documents = random.integers(0, 49_152, (DOCUMENTS, DOCUMENT), dtype=np.int32)


def sequence(number: int, new_tokens: int) -> Sequence:
    own = random.integers(0, 49_152, OWN, dtype=np.int32)
    prompt = np.concatenate([documents[number % DOCUMENTS], own])
    request = GenerateRequest(
        rid="", input_ids=[], sampling=SamplingParams(max_new_tokens=new_tokens)
    )
    return Sequence(
        request=request,
        index=0,
        seed=0,
        arrival=time.monotonic(),
        namespace="",
        token_limit=len(prompt) + new_tokens,
        output=cast(Any, None),
        tokens=IntBuffer(prompt),
        prompt_length=len(prompt),
    )


class Bench:
    """A scheduler whose RUNNING sequences decode, with requests waiting behind them."""

    def __init__(self, policy: Any, waiting: int, *, places: int, free: int = PAGES) -> None:
        """``free``: pages that are left for those that wait, and for more output."""
        pool = PagePool(PAGES, PAGE_SIZE)
        self.memory = SequenceMemory(pool, RadixCache(pool))
        self.scheduler = Scheduler(self.memory, Limits(8192, places, policy, max_wait=NEVER))
        for number in range(RUNNING):
            self.scheduler.add(sequence(number, 10_000))
        while self.scheduler.waiting:
            self.step()
        pool.allocate(max(pool.free - free, 0))
        self.added = [self.add(sequence(number, 10_000)) for number in range(waiting)]
        self.step()

    def add(self, seq: Sequence) -> float:
        return seconds(lambda: self.scheduler.add(seq))

    def step(self) -> float:
        """Seconds of the choice; then every span is computed."""
        started = time.perf_counter()
        schedule = self.scheduler.schedule(time.monotonic())
        taken = time.perf_counter() - started
        for span in schedule.spans:
            was_prefilling, reaches_end = span.seq.prefilling, span.reaches_end
            span.seq.computed += span.count
            if was_prefilling:
                self.memory.checkpoint(span.seq)
            if reaches_end:
                span.seq.tokens.append(7)
        self.memory.step_done()
        return taken

    def end_one(self) -> None:
        self.scheduler.remove(self.scheduler.running[0], time.monotonic())


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def micros(times: list[float]) -> str:
    return f"{1e6 * median(times):,.0f}" if times else ""


def measure(policy: Any, waiting: int, steps: int) -> list[str]:
    """The cells of one row of the table."""
    full = Bench(policy, waiting, places=RUNNING)
    short = Bench(policy, waiting, places=2 * RUNNING, free=512)
    ending = Bench(policy, waiting, places=RUNNING)
    ends = []
    for _ in range(min(steps, waiting)):
        ending.end_one()
        ends.append(ending.step())
    return [
        micros([full.step() for _ in range(steps)]),
        micros([short.step() for _ in range(steps)]),
        micros(ends),
        micros(full.added),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--waiting", type=int, nargs="+", default=[0, 10, 1000, 10_000])
    options = parser.parse_args()
    print("| policy | waiting | full | no pages | one ends | add |")
    print("|---|---|---|---|---|---|")
    for policy in RULES:
        for waiting in options.waiting:
            cells = measure(policy, waiting, options.steps)
            print(f"| {policy} | {waiting:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
