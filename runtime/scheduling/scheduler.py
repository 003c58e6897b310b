"""Continuous batching: each step, which sequences compute how many of their known tokens.

One budget of tokens a step covers decoding, prefill chunks, forced tokens and recovery alike.
Running sequences come first, oldest first and decoding ones before prefill, so that a long
prompt never stalls the tokens of others; what is left of the budget admits waiting ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phloem.runtime.config import Policy
from phloem.runtime.scheduling.admission import OutputReserve
from phloem.runtime.scheduling.memory import PageCopy, SequenceMemory
from phloem.runtime.scheduling.policy import order
from phloem.runtime.scheduling.sequence import Sequence

MIN_SHARED = 32
"""A waiting sequence follows a running one's prefill if that spares so many tokens more."""

MAX_DEFERRED = 256
"""How many waiting sequences that follow others are passed over in one step."""


@dataclass(frozen=True, slots=True)
class Span:
    """Compute ``count`` known tokens of ``seq``, after making the page copies."""

    seq: Sequence
    count: int
    copies: list[PageCopy]

    @property
    def reaches_end(self) -> bool:
        """Whether the last known token is computed, so that a next one can be sampled."""
        return self.count == self.seq.uncomputed


@dataclass(frozen=True, slots=True)
class Limits:
    """The scheduler's settings."""

    step_tokens: int
    max_running: int
    policy: Policy
    max_wait: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """One step's work: spans to compute, and sequences that no memory can ever hold."""

    spans: list[Span]
    retracted: int
    starved: list[Sequence]


class Scheduler:
    """Moves sequences between waiting and running; a sequence is never in both."""

    def __init__(self, memory: SequenceMemory, limits: Limits) -> None:
        self.memory = memory
        self.limits = limits
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.reserve = OutputReserve()

    def add(self, seq: Sequence) -> None:
        """Queue a sequence (with its siblings, which fork from it when its prompt is done)."""
        self.waiting.append(seq)

    def fork(self, parent: Sequence) -> list[Sequence]:
        """Start the siblings of ``parent`` on its pages; they run from now on."""
        children, parent.siblings = parent.siblings, []
        for child in children:
            self.memory.fork(parent, child)
        self.running.extend(children)
        return children

    def remove(self, seq: Sequence, *, keep: bool = True) -> None:
        """Take a sequence out, wherever it is; ``keep`` its KV in the tree if it was running."""
        if seq in self.running:
            self.running.remove(seq)
            self.memory.release(seq, keep=keep)
        elif seq in self.waiting:
            self.waiting.remove(seq)

    def schedule(self, now: float) -> Schedule:
        """Choose the next step's spans; empty if nothing runs or waits."""
        spans: list[Span] = []
        starved: list[Sequence] = []
        retracted = self._continue_running(spans, starved)
        if retracted == 0 and not starved:
            self._admit(spans, now)
            self.reserve.step_succeeded()
        return Schedule(spans, retracted, starved)

    # Running sequences

    def _continue_running(self, spans: list[Span], starved: list[Sequence]) -> int:
        """Give running sequences their spans, retracting others where memory is short."""
        queue = sorted(self.running, key=lambda seq: (seq.prefilling, seq.arrival, seq.index))
        budget = self.limits.step_tokens
        retracted = 0
        while queue and budget > 0:
            seq = queue.pop(0)
            count = min(seq.uncomputed, budget)
            copies = self.memory.reserve(seq, count)
            while copies is None and queue:
                self._retract(self._cheapest(queue), queue)
                retracted += 1
                copies = self.memory.reserve(seq, count)
            if copies is not None:
                spans.append(Span(seq, count, copies))
                budget -= count
            elif spans:
                self._retract(seq, queue)
                retracted += 1
            else:
                starved.append(seq)
        if retracted:
            self.reserve.retracted(self.running)
        return retracted

    def _cheapest(self, candidates: list[Sequence]) -> Sequence:
        """The sequence that loses least by a retraction: the least own work, then the latest.

        The oldest decoding sequence has its span first and so is never a candidate: at least
        one sequence always makes progress.
        """
        return min(candidates, key=lambda s: (s.computed - (s.cached_tokens or 0), -s.arrival))

    def _retract(self, seq: Sequence, queue: list[Sequence]) -> None:
        """Back to waiting; its full pages stay in the tree for as long as there is room."""
        if seq in queue:
            queue.remove(seq)
        self.running.remove(seq)
        self.memory.release(seq)
        seq.retractions += 1
        if not seq.prompt_scored:
            seq.prompt_logprobs.clear()
        self.waiting.append(seq)

    # Waiting sequences

    def _admit(self, spans: list[Span], now: float) -> None:
        budget = self.limits.step_tokens - sum(span.count for span in spans)
        for seq in self._candidates(now):
            if budget <= 0 or not self._has_place(seq):
                return
            span = self._start(seq, budget)
            if span is None:
                return
            spans.append(span)
            budget -= span.count

    def _candidates(self, now: float) -> Iterator[Sequence]:
        """Waiting sequences in order, but for those that do better to follow a running one."""
        if not self.waiting:
            return
        deferred = 0
        for seq in order(
            self.limits.policy,
            self.waiting,
            self.memory.cached_length,
            now,
            self.limits.max_wait,
        ):
            if not self._follows_running(seq):
                yield seq
            elif (deferred := deferred + 1) > MAX_DEFERRED:
                return

    def _has_place(self, seq: Sequence) -> bool:
        wanted = 1 + len(seq.siblings)
        return not self.running or self._places_taken() + wanted <= self.limits.max_running

    def _places_taken(self) -> int:
        return sum(1 + len(seq.siblings) for seq in self.running)

    def _follows_running(self, seq: Sequence) -> bool:
        """In-batch prefix caching: wait while another computes the same prefix, then hit it."""
        if self.memory.tree is None:
            return False
        leaders = [r for r in self.running if r.prefilling and r.namespace == seq.namespace]
        if not leaders:
            return False
        shared = max(self._shared_pages_ahead(seq, leader) for leader in leaders)
        return shared - self.memory.cached_length(seq) >= MIN_SHARED

    def _shared_pages_ahead(self, seq: Sequence, leader: Sequence) -> int:
        """Tokens of whole pages that ``leader`` will have put into the tree after its prompt."""
        limit = min(seq.reusable, leader.prompt_length)
        return common_prefix(seq, leader, limit) // self.memory.page_size * self.memory.page_size

    def _start(self, seq: Sequence, budget: int) -> Span | None:
        """Admit one waiting sequence; None, and nothing changed, if memory may not suffice."""
        self.memory.attach(seq)
        count = min(seq.uncomputed, budget)
        copies = self.memory.reserve(seq, count) if self._fits(seq) else None
        if copies is None:
            self.memory.release(seq, keep=False)
            return None
        self.waiting.remove(seq)
        self.running.append(seq)
        return Span(seq, count, copies)

    def _fits(self, seq: Sequence) -> bool:
        """Whether the sequence's tokens and everybody's expected output have room."""
        if not self.running:
            return True
        pages = self.memory.pages_for
        expected = sum(pages(s.uncomputed + self.reserve.tokens(s)) for s in self.running)
        wanted = pages(seq.uncomputed + self.reserve.tokens(seq)) + len(seq.siblings)
        return expected + wanted <= self.memory.available


def common_prefix(a: Sequence, b: Sequence, limit: int) -> int:
    """How many of the first ``limit`` known tokens are equal."""
    limit = min(limit, len(a.tokens), len(b.tokens))
    different = a.tokens.view()[:limit] != b.tokens.view()[:limit]
    return int(np.argmax(different)) if different.any() else limit
