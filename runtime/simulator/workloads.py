"""Traces of the ways in which language models are used, made up from a seed.

Each is a frozen set of parameters; ``calls()`` yields the first calls of its sessions in the
order of time, at ``rate`` sessions a second with exponential gaps, and always the same ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from phloem.runtime.simulator.trace import Call, Segment, Streams


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How many sessions come, and how fast."""

    sessions: int
    rate: float
    seed: int = 0

    def arrivals(self) -> Iterator[tuple[float, random.Random, Streams]]:
        """Time of each session, with the trace's chances and streams."""
        chance, streams, now = random.Random(self.seed), Streams(), 0.0
        for _ in range(self.sessions):
            now += chance.expovariate(self.rate)
            yield now, chance, streams


@dataclass(frozen=True, kw_only=True)
class SharedPrefix(Workload):
    """Questions under one of a few long system prompts."""

    groups: int = 16
    system: int = 1024
    question: int = 64
    output: int = 64

    def calls(self) -> Iterator[Call]:
        groups = reserved(self.groups, self.system, self.seed)
        for now, chance, streams in self.arrivals():
            question = streams.take(about(chance, self.question))
            output = streams.take(about(chance, self.output))
            yield Call(now, (chance.choice(groups), question), output)


@dataclass(frozen=True, kw_only=True)
class Chat(Workload):
    """Conversations of several turns; a user thinks between two."""

    turns: int = 8
    system: int = 256
    message: int = 64
    output: int = 160
    think: float = 20.0

    def calls(self) -> Iterator[Call]:
        [system] = reserved(1, self.system, self.seed)
        for now, chance, streams in self.arrivals():
            turns = 1 + int(chance.expovariate(1 / self.turns))  # no turn is likelier the last
            yield self._turn(now, (system,), turns, chance, streams)

    def _turn(
        self,
        at: float,
        context: tuple[Segment, ...],
        turns: int,
        chance: random.Random,
        streams: Streams,
    ) -> Call:
        prompt = (*context, streams.take(about(chance, self.message)))
        output = streams.take(about(chance, self.output))
        if turns == 1:
            return Call(at, prompt, output)
        pause = chance.expovariate(1 / self.think)
        return Call(
            at, prompt, output, (self._turn(pause, (*prompt, output), turns - 1, chance, streams),)
        )


@dataclass(frozen=True, kw_only=True)
class AgentTree(Workload):
    """Agents that call tools in a loop; at some steps several continuations are tried."""

    steps: int = 8
    tools: int = 1500
    task: int = 200
    thought: int = 80
    result: int = 300
    branches: int = 3
    branching: float = 0.15
    tool_time: float = 4.0

    def calls(self) -> Iterator[Call]:
        [tools] = reserved(1, self.tools, self.seed)
        for now, chance, streams in self.arrivals():
            task = streams.take(about(chance, self.task))
            yield self._step(now, (tools, task), about(chance, self.steps), chance, streams)

    def _step(
        self,
        at: float,
        prompt: tuple[Segment, ...],
        steps: int,
        chance: random.Random,
        streams: Streams,
    ) -> Call:
        thought = streams.take(about(chance, self.thought))
        width = self.branches if chance.random() < self.branching else 1
        following = []
        for _ in range(width if steps > 1 else 0):
            result = streams.take(about(chance, self.result))
            pause = chance.expovariate(1 / self.tool_time)
            following.append(
                self._step(pause, (*prompt, thought, result), steps - 1, chance, streams)
            )
        return Call(at, prompt, thought, tuple(following))


@dataclass(frozen=True, kw_only=True)
class Rag(Workload):
    """Questions about a few documents each, drawn by Zipf's law; popularity drifts."""

    documents: int = 400
    document: int = 800
    retrieved: int = 2
    system: int = 128
    question: int = 40
    output: int = 100
    exponent: float = 1.0
    drift: int = 2000
    """Sessions after which other documents are the popular ones."""

    def calls(self) -> Iterator[Call]:
        [system] = reserved(1, self.system, self.seed)
        documents = reserved(self.documents + 1, self.document, self.seed)[1:]
        weights = [*accumulate(1 / rank**self.exponent for rank in range(1, len(documents) + 1))]
        for index, (now, chance, streams) in enumerate(self.arrivals()):
            if index % self.drift == 0:
                chance.shuffle(documents)
            found = distinct(chance, documents, weights, self.retrieved)
            question = streams.take(about(chance, self.question))
            prompt = (system, *found, question)
            yield Call(now, prompt, streams.take(about(chance, self.output)))


@dataclass(frozen=True, kw_only=True)
class LongPrefill(Workload):
    """Short questions, among them some about a long text of their own that is asked about again."""

    long_share: float = 0.1
    long: int = 12_000
    asked: int = 3
    system: int = 512
    short: int = 128
    output: int = 100
    think: float = 15.0

    def calls(self) -> Iterator[Call]:
        [system] = reserved(1, self.system, self.seed)
        for now, chance, streams in self.arrivals():
            is_long = chance.random() < self.long_share
            context = (system, streams.take(about(chance, self.long))) if is_long else (system,)
            follow_ups = tuple(
                self._question(chance.expovariate(1 / self.think), context, chance, streams)
                for _ in range(self.asked - 1 if is_long else 0)
            )
            yield self._question(now, context, chance, streams, follow_ups)

    def _question(
        self,
        at: float,
        context: tuple[Segment, ...],
        chance: random.Random,
        streams: Streams,
        then: tuple[Call, ...] = (),
    ) -> Call:
        question = streams.take(about(chance, self.short))
        is_short = len(context) == 1
        return Call(
            at,
            (*context, question),
            streams.take(about(chance, self.output)),
            then,
            priority=int(is_short),
        )


def reserved(n: int, mean: int, seed: int) -> list[Segment]:
    """Streams that all sessions share: from the upper end, where ``Streams`` never comes."""
    chance = random.Random(seed)
    return [Segment(2**32 - 1 - index, about(chance, mean)) for index in range(n)]


def about(chance: random.Random, mean: int) -> int:
    """A length from half to one and a half times ``mean``, at least 1."""
    return max(1, round(mean * chance.uniform(0.5, 1.5)))


def distinct(
    chance: random.Random, items: Sequence[Segment], weights: Sequence[float], n: int
) -> list[Segment]:
    """``n`` different items with cumulative ``weights``, in the order in which they are drawn."""
    found: dict[int, Segment] = {}
    while len(found) < n:
        [item] = chance.choices(items, cum_weights=weights)
        found[item.stream] = item
    return list(found.values())
