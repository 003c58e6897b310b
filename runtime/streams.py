"""Requests in flight as seen by a client: each has a queue in the event loop that reads it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterable

from phloem.runtime.errors import EngineDeadError
from phloem.runtime.protocol import Delta

Item = Delta | EngineDeadError


class Stream:
    """The deltas of one request, filled by the client's receiver, read in one event loop.

    ``unfinished`` counts sequences whose end the reader has not seen, ``pending`` those whose
    end the engine has not reported: a stream left early is pending until its abort is done.
    """

    def __init__(self, rid: str, count: int) -> None:
        self.rid = rid
        self.unfinished = count
        self.pending = count
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[Item] = asyncio.Queue()

    async def next(self) -> Delta:
        """The next delta.

        Raises:
            EngineDeadError: the engine died.
        """
        item = await self.queue.get()
        if isinstance(item, EngineDeadError):
            raise item
        self.unfinished -= item.finish is not None
        return item


class Streams:
    """All streams of one client; filled from a receiver thread, opened in any event loop.

    A request's rid is in use until the engine has reported the end of all its sequences.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[str, Stream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, rid: str) -> bool:
        return rid in self._streams

    def open(self, stream: Stream) -> bool:
        """Register a stream; False if its rid is in use."""
        with self._lock:
            return self._streams.setdefault(stream.rid, stream) is stream

    def put(self, deltas: Iterable[Delta]) -> None:
        """Hand deltas to their readers: one wake-up per event loop, not per request."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Stream, Item]]] = defaultdict(list)
        for delta in deltas:
            stream = self._streams[delta.rid]
            by_loop[stream.loop].append((stream, delta))
            stream.pending -= delta.finish is not None
            if stream.pending == 0:
                self._forget(stream)
        for loop, items in by_loop.items():
            wake(loop, items)

    def _forget(self, stream: Stream) -> None:
        with self._lock:
            del self._streams[stream.rid]

    def fail(self, error: EngineDeadError) -> None:
        """Tell every reader that nothing more will come."""
        with self._lock:
            streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            wake(stream.loop, [(stream, error)])


def wake(loop: asyncio.AbstractEventLoop, items: list[tuple[Stream, Item]]) -> None:
    # A loop that was closed has no readers left.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(deliver, items)


def deliver(items: list[tuple[Stream, Item]]) -> None:
    for stream, item in items:
        stream.queue.put_nowait(item)
