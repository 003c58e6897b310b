"""Which calls come next: those of a trace, and those that follow from ended ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import count

from phloem.runtime.simulator.trace import Call


class Calendar:
    """Calls by time; reads a trace, which is in the order of time, no further than it must."""

    def __init__(self, trace: Iterable[Call]) -> None:
        self._trace = iter(trace)
        self._due: list[tuple[float, int, Call]] = []
        self._order = count()
        self._upcoming = next(self._trace, None)

    def follow(self, call: Call, ended: float) -> None:
        """Enter the calls that follow from one that ended."""
        for following in call.then:
            entry = (ended + following.at, next(self._order), following)
            heapq.heappush(self._due, entry)

    @property
    def next_time(self) -> float:
        """When the next call comes; infinity if none does."""
        own = self._due[0][0] if self._due else math.inf
        return min(own, self._upcoming.at) if self._upcoming is not None else own

    def take(self, now: float) -> Iterator[tuple[float, Call]]:
        """Take out the calls that have come by ``now``, with their times, in order."""
        while (time := self.next_time) <= now:
            if self._upcoming is not None and self._upcoming.at == time:
                yield time, self._upcoming
                self._upcoming = next(self._trace, None)
            else:
                yield time, heapq.heappop(self._due)[-1]
