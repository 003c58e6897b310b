"""Replay a trace: the engine's scheduler, memory and tree in simulated time.

Only the model is missing. A step takes as long as the cost model says, and each sequence gets the
tokens that its call names, so what is scheduled, shared, evicted and retracted is what the engine
would do. The steps are those of ``EngineCore``, without text, sampling and grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from phloem.radix_cache import PagePool, RadixCache
from phloem.runtime.config import Eviction, Policy
from phloem.runtime.output import OutputText
from phloem.runtime.protocol import Finish, GenerateRequest
from phloem.runtime.scheduling.buffer import IntBuffer, Ints
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.scheduler import Limits, Scheduler, Span
from phloem.runtime.scheduling.sequence import Sequence
from phloem.runtime.simulator.calendar import Arrival, Calendar
from phloem.runtime.simulator.costs import CostModel
from phloem.runtime.simulator.trace import Call, spell

MakeTree = Callable[[PagePool, str, Callable[[], float]], RadixCache]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a trace runs on, and how that is managed; see EngineConfig for the settings.

    ``knows_programs``: whether calls say how many of their program will follow them.
    """

    cost: CostModel
    pages: int
    page_size: int = 16
    step_tokens: int = 512
    max_running: int = 64
    policy: Policy = "lpm"
    eviction: Eviction = "lru"
    max_wait: float = 5.0
    knows_programs: bool = True
    make_tree: MakeTree = RadixCache

    def scheduler(self, clock: Callable[[], float]) -> Scheduler:
        pool = PagePool(self.pages, self.page_size)
        memory = SequenceMemory(pool, self.make_tree(pool, self.eviction, clock))
        limits = Limits(
            step_tokens=self.step_tokens,
            max_running=self.max_running,
            policy=self.policy,
            max_wait=self.max_wait,
        )
        return Scheduler(memory, limits)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call that has ended; times in seconds of the simulated clock.

    Attributes:
        program: the number of the trace's call that it is, or follows from.
        started: when its first span was scheduled.
        first_token: when the step that made its first token was done.
        hit: leading prompt tokens that the tree had when it started.
    """

    call: Call
    program: int
    arrival: float
    started: float
    first_token: float
    finished: float
    hit: int
    retractions: int


@dataclass(slots=True)
class Running:
    """A call on its way, and the tokens that it will generate, int32."""

    call: Call
    program: int
    output: Ints
    started: float = 0.0
    first_token: float = 0.0
    hit: int | None = None


class NoText(OutputText):
    """Nobody reads what simulated sequences say."""

    def __init__(self) -> None:
        pass


class Simulation:
    """One replay.

    Attributes:
        now: the simulated clock, in seconds.
        steps: how many were done; computed: how many tokens they computed, again ones too.
    """

    def __init__(self, machine: Machine, trace: Iterable[Call]) -> None:
        self.now = 0.0
        self.steps = 0
        self.computed = 0
        self.scheduler = machine.scheduler(lambda: self.now)
        self._machine = machine
        self._calendar = Calendar(trace)
        self._running: dict[Sequence, Running] = {}
        self._text = NoText()

    def run(self) -> Iterator[Outcome]:
        """Replay to the end; the calls as they end.

        Raises:
            ValueError: a call is too long for the machine's memory.
        """
        while True:
            self._admit()
            if self._running:
                yield from self.step()
            elif self._calendar.next_time < float("inf"):
                self.now = self._calendar.next_time
            else:
                return

    def step(self) -> list[Outcome]:
        """Do one step and let its time pass; the calls that it ended."""
        schedule = self.scheduler.schedule(self.now)
        if schedule.starved:
            raise RuntimeError("a sequence that fits the memory alone found no room")
        for span in schedule.spans:
            self._note_start(span)
        self.now += self._machine.cost.seconds(schedule.spans)
        self.scheduler.memory.step_done()
        self.steps += 1
        ended = [self._end(span.seq) for span in schedule.spans if self._advance(span)]
        for outcome in ended:
            self._calendar.follow(outcome.call, outcome.program, self.now)
        return ended

    def _admit(self) -> None:
        for arrival in self._calendar.take(self.now):
            seq = self._sequence(arrival)
            output = spell((arrival.call.output,))
            self._running[seq] = Running(arrival.call, arrival.program, output)
            self.scheduler.add(seq)

    def _sequence(self, arrival: Arrival) -> Sequence:
        call = arrival.call
        length = call.prompt_length + call.output.length
        most = (self._machine.pages - 1) * self._machine.page_size
        if length > most:
            raise ValueError(f"a call of {length} tokens cannot run in memory for {most}")
        return Sequence(
            request=self._request(arrival),
            index=0,
            seed=0,
            arrival=arrival.time,
            namespace="",
            token_limit=length,
            output=self._text,
            tokens=IntBuffer(spell(call.prompt)),
            prompt_length=call.prompt_length,
        )

    def _request(self, arrival: Arrival) -> GenerateRequest:
        call = arrival.call
        return GenerateRequest(
            rid="",
            input_ids=[],
            priority=call.priority,
            program=str(arrival.program),
            calls_left=call.calls_left if self._machine.knows_programs else None,
        )

    def _note_start(self, span: Span) -> None:
        running = self._running[span.seq]
        if running.hit is None:
            running.hit, running.started = span.seq.computed, self.now

    def _advance(self, span: Span) -> bool:
        """Count the computed tokens, share their pages, make the next; whether that was the last.

        As ``EngineCore`` does it, but that all goes as the trace says.
        """
        seq, was_prefilling, reaches_end = span.seq, span.seq.prefilling, span.reaches_end
        seq.computed += span.count
        self.computed += span.count
        if was_prefilling:
            self.scheduler.memory.checkpoint(seq)
        if reaches_end:
            running = self._running[seq]
            if seq.generated == 0:
                running.first_token = self.now
            seq.tokens.append(int(running.output[seq.generated]))
        return reaches_end and seq.remaining <= 0

    def _end(self, seq: Sequence) -> Outcome:
        seq.finish = Finish(reason="length")
        self.scheduler.remove(seq, self.now)
        running = self._running.pop(seq)
        return Outcome(
            call=running.call,
            program=running.program,
            arrival=seq.arrival,
            started=running.started,
            first_token=running.first_token,
            finished=self.now,
            hit=running.hit or 0,
            retractions=seq.retractions,
        )
