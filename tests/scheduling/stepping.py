"""The scheduler with its memory and tree, stepped by hand: a model that makes token after token."""

from __future__ import annotations

from typing import Any, cast

from phloem.radix_cache import PagePool, RadixCache
from phloem.runtime.protocol import Finish, GenerateRequest, SamplingParams
from phloem.runtime.scheduling.buffer import IntBuffer
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.scheduler import Limits, Schedule, Scheduler, Span
from phloem.runtime.scheduling.sequence import Sequence

PAGE_SIZE = 16


class Stepper:
    """A step takes a second, whatever it computes; every step accounts for every page.

    Attributes:
        started: when each sequence had its first span.
        ended: when each sequence was done.
    """

    def __init__(
        self,
        policy: Any,
        *,
        pages: int = 64,
        step_tokens: int = 64,
        max_running: int = 4,
        max_wait: float = float("inf"),
    ) -> None:
        pool = PagePool(pages, PAGE_SIZE)
        self.now = 0.0
        self.memory = SequenceMemory(pool, RadixCache(pool, clock=lambda: self.now))
        self.scheduler = Scheduler(
            self.memory, Limits(step_tokens, max_running, policy, max_wait=max_wait)
        )
        self.started: dict[Sequence, float] = {}
        self.ended: dict[Sequence, float] = {}

    def add(self, prompt: list[int], new: int = 4, *, n: int = 1, **fields: Any) -> Sequence:
        """Queue a request for ``n`` times ``new`` tokens; its first sequence."""
        sampling = SamplingParams(max_new_tokens=new, n=n)
        request = GenerateRequest(rid="", input_ids=prompt, sampling=sampling, **fields)
        first, *others = (
            Sequence(
                request=request,
                index=index,
                seed=0,
                arrival=self.now,
                namespace="",
                token_limit=len(prompt) + new,
                output=cast(Any, None),
                tokens=IntBuffer(prompt),
                prompt_length=len(prompt),
            )
            for index in range(n)
        )
        first.siblings = others
        self.scheduler.add(first)
        return first

    def step(self) -> Schedule:
        schedule = self.scheduler.schedule(self.now)
        for span in schedule.spans:
            self.started.setdefault(span.seq, self.now)
        self.now += 1
        for span in schedule.spans:
            self._advance(span)
        self.memory.step_done()
        self.memory.check(self.scheduler.running)
        return schedule

    def run(self, most: int = 2000) -> None:
        """Step until everything is done."""
        while self.scheduler.running or self.scheduler.waiting:
            self.step()
            assert self.now < most, "this does not end"

    def _advance(self, span: Span) -> None:
        seq, was_prefilling, reaches_end = span.seq, span.seq.prefilling, span.reaches_end
        seq.computed += span.count
        if was_prefilling:
            self.memory.checkpoint(seq)
        if reaches_end:
            for each in (seq, *self.scheduler.fork(seq)):
                self._sample(each)

    def _sample(self, seq: Sequence) -> None:
        seq.tokens.append(1000 + seq.index)
        if seq.remaining <= 0:
            self.ended[seq] = self.now
            seq.finish = Finish(reason="length")
            self.scheduler.remove(seq, self.now)
