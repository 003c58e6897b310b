"""What a trace is made of: calls, whose prompts are spelled by streams of tokens.

A stream is an endless sequence of tokens that its number determines. Prompts that share content
name the same streams, and a turn that follows another names the stream of its output, so a trace
of hours is small, and a call's tokens exist only while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from phloem.runtime.scheduling.buffer import Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """The first ``length`` tokens of a stream."""

    stream: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One request, and those that follow from it.

    Attributes:
        at: seconds from the start of the trace; of one that follows, from the end of the call
            before (a user's thinking, a tool's run).
        output: what it will generate.
        then: calls made when it has ended.
    """

    at: float
    prompt: tuple[Segment, ...]
    output: Segment
    then: tuple[Call, ...] = ()
    priority: int = 0

    @property
    def prompt_length(self) -> int:
        return sum(segment.length for segment in self.prompt)

    @property
    def calls_left(self) -> int:
        """How many calls follow one after the other, on the longest way."""
        return max((1 + call.calls_left for call in self.then), default=0)

    def __iter__(self) -> Iterator[Call]:
        """The call and all that follow from it, parents first."""
        yield self
        for call in self.then:
            yield from call


def spell(segments: tuple[Segment, ...]) -> Ints:
    """The tokens, int32 [sum of lengths]."""
    return np.concatenate([stream(s.stream, s.length) for s in segments], dtype=np.int32)


@lru_cache(maxsize=256)
def stream(number: int, length: int) -> Ints:
    """The first tokens of a stream, int32 [length], below 2^15; not to be written.

    Each is a hash of the stream's number, below 2^32, and of its place (after Steele et al.,
    2014: SplitMix).
    """
    mixed = np.arange(length, dtype=np.uint64) + np.uint64(number << 32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(49)).astype(np.int32)


class Streams:
    """Gives out streams that no one else has."""

    def __init__(self) -> None:
        self._numbers = count()

    def take(self, length: int) -> Segment:
        return Segment(next(self._numbers), length)
