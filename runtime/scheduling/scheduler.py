"""Continuous batching: each step, which sequences compute how many of their known tokens.

One budget of tokens a step covers decoding, prefill chunks, forced tokens and recovery alike.
Running sequences come first, oldest first and decoding ones before prefill, so that a long
prompt never stalls the tokens of others; what is left of the budget starts waiting ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from phloem.runtime.config import Policy
from phloem.runtime.scheduling.admission import OutputReserve
from phloem.runtime.scheduling.following import MIN_SHARED, Leaders
from phloem.runtime.scheduling.memory import PageCopy, SequenceMemory
from phloem.runtime.scheduling.policy import RULES
from phloem.runtime.scheduling.preemption import victims
from phloem.runtime.scheduling.programs import Programs
from phloem.runtime.scheduling.queue import WaitingQueue
from phloem.runtime.scheduling.room import Room, places
from phloem.runtime.scheduling.sequence import Sequence


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
    """The scheduler's settings; ``max_wait`` in seconds."""

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
        self.reserve = OutputReserve()
        self.running: list[Sequence] = []
        self.programs = Programs()
        self._rule = RULES[limits.policy]
        self.waiting = WaitingQueue(self._rule, memory, limits.max_wait)
        self._room = Room(memory, self.reserve, limits.step_tokens, limits.max_running)

    def add(self, seq: Sequence) -> None:
        """Queue a sequence (with its siblings, which fork from it when its prompt is done)."""
        self.programs.enter(seq)
        self.waiting.add(seq, seq.arrival)

    def fork(self, parent: Sequence) -> list[Sequence]:
        """Start the siblings of ``parent`` on its pages; they run from now on."""
        children, parent.siblings = parent.siblings, []
        for child in children:
            child.waited = parent.waited
            self.memory.fork(parent, child)
        self.running.extend(children)
        return children

    def remove(self, seq: Sequence, now: float, *, keep: bool = True) -> None:
        """Take a sequence out, wherever it is; ``keep`` its KV in the tree if it was running."""
        self.programs.leave(seq, now)
        if seq in self.running:
            self.running.remove(seq)
            self.memory.release(seq, keep=keep, pin_ttl=self._pin_ttl(seq))
        elif seq in self.waiting:
            self.waiting.remove(seq)

    def _pin_ttl(self, seq: Sequence) -> float:
        """Seconds for which the cache is to keep what an ended sequence leaves."""
        if seq.finish is None or seq.finish.reason not in ("stop", "length"):
            return 0.0
        if seq.request.pin_ttl or not self._rule.keeps_warm:
            return seq.request.pin_ttl
        return self.programs.keep_warm(seq)

    def schedule(self, now: float) -> Schedule:
        """Choose the next step's spans; empty if nothing runs or waits. ``now`` in seconds."""
        self.memory.expire_pins()
        spans: list[Span] = []
        starved: list[Sequence] = []
        preempted = self._preempt(now) if self._rule.preempts else 0
        retracted = self._continue_running(spans, starved, now)
        if retracted == 0 and not starved:
            self._admit(spans, starved, now)
            self.reserve.step_succeeded()
        return Schedule(spans, preempted + retracted, starved)

    # Running sequences

    def _continue_running(self, spans: list[Span], starved: list[Sequence], now: float) -> int:
        """Give running sequences their spans, retracting others where memory is short."""
        queue = sorted(self.running, key=self._turn)
        budget = self.limits.step_tokens
        retracted = 0
        while queue and budget > 0:
            seq = queue.pop(0)
            count = min(seq.uncomputed, budget)
            copies = self.memory.reserve(seq, count)
            while copies is None and queue:
                cheapest = min(queue, key=self._loss)
                queue.remove(cheapest)
                self._retract(cheapest, now)
                retracted += 1
                copies = self.memory.reserve(seq, count)
            if copies is not None:
                spans.append(Span(seq, count, copies))
                budget -= count
            elif spans:
                self._retract(seq, now)
                retracted += 1
            else:
                starved.append(seq)
        if retracted:
            self.reserve.retracted(self.running)
        return retracted

    def _turn(self, seq: Sequence) -> tuple[float, ...]:
        return seq.prefilling, -self._standing(seq), seq.arrival, seq.index

    def _loss(self, seq: Sequence) -> tuple[float, ...]:
        """Least for who loses least by a retraction: tokens to compute again; then the latest.

        Who has the first turn has its span first and so is never a candidate: at least one
        sequence always makes progress.
        """
        return self._standing(seq), self.memory.own_tokens(seq), -seq.arrival

    def _standing(self, seq: Sequence) -> float:
        """A running sequence's priority, where it counts; who was due to start is above all."""
        if not self._rule.preempts:
            return 0.0
        return math.inf if seq.waited >= self.limits.max_wait else seq.request.priority

    def _retract(self, seq: Sequence, now: float) -> None:
        """Back to waiting; its full pages stay in the tree for as long as there is room."""
        self.running.remove(seq)
        self.memory.release(seq)
        seq.retractions += 1
        self.waiting.add(seq, now)

    # Waiting sequences

    def _preempt(self, now: float) -> int:
        """Retract those of lower priority that keep the next sequence from starting.

        None of them if it could not start even so; none that was due to start; and the next
        sequence needs the priority for it: having waited long does not suffice.
        """
        leaders = Leaders(self.running, self.memory.page_size)
        for seq in self.waiting.candidates(now):
            if not self._follows(seq, leaders):
                lower = [r for r in self.running if self._standing(r) < seq.request.priority]
                stopped = victims(seq, self.running, sorted(lower, key=self._loss), self._room)
                for each in stopped:
                    self._retract(each, now)
                return len(stopped)
        return 0

    def _admit(self, spans: list[Span], starved: list[Sequence], now: float) -> None:
        """Start waiting sequences in their order, until one finds no room."""
        budget = self.limits.step_tokens - sum(span.count for span in spans)
        if not self.waiting or budget <= 0 or self._is_full():
            return
        leaders = Leaders(self.running, self.memory.page_size)
        for seq in self.waiting.candidates(now):
            if self._follows(seq, leaders):
                if self.waiting.is_due(seq, now):
                    return  # nobody may overtake it
                continue
            if not self._room.can_hold(seq):
                starved.append(seq)
                continue
            span = self._start(seq, budget, now)
            if span is None:
                self.waiting.hold(seq)
                return
            spans.append(span)
            leaders.add(seq)
            budget -= span.count
            if budget <= 0 or self._is_full():
                return

    def _is_full(self) -> bool:
        return places(self.running) >= self.limits.max_running

    def _follows(self, seq: Sequence, leaders: Leaders) -> bool:
        """Whether it is to wait for a running one that computes the same prefix, and then hit it.

        Nobody waits for one of lower priority, which might itself have to wait.
        """
        if self.memory.tree is None:
            return False
        shared = max(
            (
                leaders.ahead(seq, leader)
                for leader in leaders.of(seq)
                if not self._rule.preempts or self._standing(leader) >= seq.request.priority
            ),
            default=0,
        )
        return shared >= MIN_SHARED and shared - self.memory.cached_length(seq) >= MIN_SHARED

    def _has_pages(self, seq: Sequence, now: float) -> bool:
        """Whether there are pages beside those of who runs; who is due gets pinned ones too."""
        fits = self._room.has_pages(seq, self.running)
        while not fits and self.waiting.is_due(seq, now) and self.memory.drop_first_pin():
            fits = self._room.has_pages(seq, self.running)
        return fits

    def _start(self, seq: Sequence, budget: int, now: float) -> Span | None:
        """Start one waiting sequence; None, and nothing changed, if there may be no room."""
        if not self._room.has_place(seq, self.running) or not self.memory.attach(seq):
            return None
        count = min(seq.uncomputed, budget)
        copies = self.memory.reserve(seq, count) if self._has_pages(seq, now) else None
        if copies is None:
            self.memory.release(seq, keep=False)
            return None
        if seq.cached_tokens is None:
            seq.cached_tokens = seq.computed
        self.waiting.start(seq, now)
        self.running.append(seq)
        return Span(seq, count, copies)
