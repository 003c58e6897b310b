"""The client protocol over any connection to an engine's loop."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from typing import Protocol

from phloem.runtime.errors import EngineDeadError, OverloadedError, RequestError
from phloem.runtime.protocol import Delta, EngineStats, GenerateRequest, ModelInfo
from phloem.runtime.streams import Stream, Streams
from phloem.runtime.text.tokenizer import Tokenizer
from phloem.runtime.validation import validate
from phloem.runtime.wire import (
    Abort,
    Add,
    Command,
    Dead,
    Flush,
    Flushed,
    GetStats,
    News,
    Reply,
    Stats,
)


class Connection(Protocol):
    """The client's end of a connection to an engine's loop."""

    def send(self, command: Command) -> None:
        """Hand a command to the engine; callable from any thread."""

    def start(self, receive: Callable[[Reply], None]) -> None:
        """Call ``receive`` with every reply from now on, from one thread.

        When the engine ends, for whatever reason, the last reply is Dead.
        """

    def close(self) -> None:
        """Stop the engine and wait for its end."""


class EngineClient:
    """A ``phloem.runtime.client.Client``; usable from several threads and event loops."""

    def __init__(
        self, connection: Connection, info: ModelInfo, tokenizer: Tokenizer, max_requests: int
    ) -> None:
        self._connection = connection
        self._info = info
        self._tokenizer = tokenizer
        self._max_requests = max_requests
        self._streams = Streams()
        self._tickets = itertools.count()
        self._asked: dict[int, Future[bool] | Future[EngineStats]] = {}
        self._lock = threading.Lock()
        self._death: str | None = None
        connection.start(self._receive)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def healthy(self) -> bool:
        return self._death is None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """See ``Client.generate``."""
        validate(request, self._info)
        stream = self._open(request)
        try:
            self._connection.send(Add(request))
            while stream.unfinished:
                yield await stream.next()
        finally:
            if stream.unfinished and self.healthy:
                self._connection.send(Abort(request.rid))

    def _open(self, request: GenerateRequest) -> Stream:
        if len(self._streams) >= self._max_requests:
            raise OverloadedError(f"{self._max_requests} requests are running or waiting already")
        stream = Stream(request.rid, request.sampling.n)
        if not self._streams.open(stream):
            raise RequestError(
                f"rid {request.rid!r} belongs to a request that is still running",
                param="rid",
                code="duplicate_rid",
            )
        # After registering: a death from now on fails the stream.
        self._require_life()
        return stream

    async def abort(self, rid: str) -> bool:
        """See ``Client.abort``."""
        self._require_life()
        known = rid in self._streams
        if known:
            self._connection.send(Abort(rid))
        return known

    async def flush_cache(self) -> bool:
        """See ``Client.flush_cache``."""
        future: Future[bool] = Future()
        self._ask(Flush(self._ticket(future)))
        return await asyncio.wrap_future(future)

    async def stats(self) -> EngineStats:
        """See ``Client.stats``."""
        future: Future[EngineStats] = Future()
        self._ask(GetStats(self._ticket(future)))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Stop the engine; running requests end with EngineDeadError."""
        self._connection.close()
        self._die("the engine was shut down")

    def _ticket(self, future: Future[bool] | Future[EngineStats]) -> int:
        ticket = next(self._tickets)
        with self._lock:
            self._asked[ticket] = future
        return ticket

    def _ask(self, command: Flush | GetStats) -> None:
        self._require_life()
        self._connection.send(command)

    def _require_life(self) -> None:
        if self._death is not None:
            raise EngineDeadError(self._death)

    # In the receiver's thread

    def _receive(self, reply: Reply) -> None:
        match reply:
            case News(deltas):
                self._streams.put(deltas)
            case Flushed(ticket, done):
                self._answer(ticket, done)
            case Stats(ticket, stats):
                self._answer(ticket, stats)
            case Dead(message):
                self._die(message)
            case _:
                pass

    def _answer(self, ticket: int, value: bool | EngineStats) -> None:
        with self._lock:
            future = self._asked.pop(ticket, None)
        if future is not None and future.set_running_or_notify_cancel():
            future.set_result(value)  # type: ignore[arg-type]  # the ticket ties the types

    def _die(self, message: str) -> None:
        if self._death is None:
            self._death = message
        error = EngineDeadError(self._death)
        self._streams.fail(error)
        with self._lock:
            asked, self._asked = self._asked, {}
        for future in asked.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
