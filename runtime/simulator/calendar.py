"""Which calls come next: those of a trace, and those that follow from ended ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from phloem.runtime.simulator.trace import Call


class Arrival(NamedTuple):
    """A call that comes at ``time``; ``program`` numbers the call of the trace it follows from."""

    time: float
    order: int
    program: int
    call: Call


class Calendar:
    """Calls by time; reads a trace, which is in the order of time, no further than it must."""

    def __init__(self, trace: Iterable[Call]) -> None:
        self._programs = enumerate(trace)
        self._order = count()
        self._due: list[Arrival] = []
        self._upcoming = self._read()

    def _read(self) -> Arrival | None:
        for program, call in self._programs:
            return Arrival(call.at, -1, program, call)  # before what follows at the same time
        return None

    def follow(self, call: Call, program: int, ended: float) -> None:
        """Enter the calls that follow from one that ended."""
        for following in call.then:
            entry = Arrival(ended + following.at, next(self._order), program, following)
            heapq.heappush(self._due, entry)

    @property
    def next_time(self) -> float:
        """When the next call comes; infinity if none does."""
        own = self._due[0].time if self._due else math.inf
        return min(own, self._upcoming.time) if self._upcoming is not None else own

    def take(self, now: float) -> Iterator[Arrival]:
        """Take out the calls that have come by ``now``, in order."""
        while (time := self.next_time) <= now:
            if self._upcoming is not None and self._upcoming.time == time:
                yield self._upcoming
                self._upcoming = self._read()
            else:
                yield heapq.heappop(self._due)
