"""How long a request may take: to start, for the engine's sake, and to end, for its client's."""

from __future__ import annotations

from phloem.runtime.protocol import ErrorInfo, GenerateRequest
from phloem.runtime.scheduling.ordered import Ordered


class Deadlines:
    """The ends of the patience with each request, by its rid; times in seconds of one clock.

    What cannot start within ``queue_timeout`` is refused as overload (503): its client may try
    again elsewhere or later. What is not done ``GenerateRequest.deadline`` after its arrival is
    ended (504), wherever it is: nobody waits for it any more.
    """

    def __init__(self, queue_timeout: float | None) -> None:
        self._queue_timeout = queue_timeout
        self._starts: Ordered[str] = Ordered()
        self._ends: Ordered[str] = Ordered()

    def add(self, request: GenerateRequest, arrival: float) -> None:
        for limits, seconds in (
            (self._starts, self._queue_timeout),
            (self._ends, request.deadline),
        ):
            if seconds is not None:
                limits.add(request.rid, arrival + seconds, seconds)

    def started(self, rid: str) -> None:
        """The request has left the queue; if memory gets short it may come back, and stay."""
        if rid in self._starts:
            self._starts.remove(rid)

    def remove(self, rid: str) -> None:
        """The request is done."""
        self.started(rid)
        if rid in self._ends:
            self._ends.remove(rid)

    def passed(self, now: float) -> dict[str, ErrorInfo]:
        """The requests whose time is over, and what to tell their clients."""
        late = {rid: self._too_late(rid) for rid in self._ends.until(now, len(self._ends))}
        unserved = {rid: self._unserved() for rid in self._starts.until(now, len(self._starts))}
        return unserved | late

    def _unserved(self) -> ErrorInfo:
        return ErrorInfo(
            status=503,
            message=f"overloaded: the request could not start within the {self._queue_timeout:g} s "
            f"that requests may wait (queue_timeout)",
            code="overloaded",
        )

    def _too_late(self, rid: str) -> ErrorInfo:
        _, seconds = self._ends.key(rid)
        return ErrorInfo(
            status=504,
            message=f"the request was not done within {seconds:g} s, the time that its client gave",
            code="timeout",
        )
