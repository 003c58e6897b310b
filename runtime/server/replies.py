"""The two kinds of answers to a batch: one JSON body, or server-sent events.

Both run the batch inside the response, so that one place owns its life: whatever ends the
response (completion, an error, the client leaving, a timeout, shutdown) closes the deltas, and
with them what still runs in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Delta
from phloem.runtime.server.collect import Batch, gather
from phloem.runtime.server.disconnect import until_disconnect
from phloem.runtime.server.errors import error_body, error_info
from phloem.runtime.server.service import Service

encode = msgspec.json.Encoder().encode

DONE = b"data: [DONE]\n\n"

STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


def json_response(value: Any, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json")


def event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


class EventWriter(Protocol):
    """Turns deltas into the events of one API."""

    def events(self, slot: int, delta: Delta) -> bytes:
        """The events for one delta; empty if there is nothing to tell."""

    def tail(self) -> bytes:
        """What comes behind the last delta, before ``[DONE]``."""


class Answer(Response):
    """Runs a batch to its end and answers with what ``render`` makes of all completions."""

    def __init__(
        self,
        service: Service,
        batch: Batch,
        render: Callable[[list[Completion]], bytes],
        headers: Mapping[str, str],
    ) -> None:
        super().__init__()
        self._service = service
        self._batch = batch
        self._render = render
        self._extra_headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with until_disconnect(receive):
            async with self._service.running(self._batch) as deltas:
                completions = await gather(deltas, self._batch.starts[-1])
            body = Response(
                self._render(completions),
                headers=self._extra_headers,
                media_type="application/json",
            )
            await body(scope, receive, send)


class EventStream(Response):
    """Runs a batch and sends what ``writer`` makes of each delta.

    Nothing is sent before there is something to tell, so an error until then has its own
    status. A later one is sent as an event with the error's body, and ends the stream.
    """

    def __init__(
        self, service: Service, batch: Batch, writer: EventWriter, headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers={**STREAM_HEADERS, **headers})
        self._service = service
        self._batch = batch
        self._writer = writer
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with until_disconnect(receive):
            try:
                await self._send_deltas(send)
                last = self._writer.tail()
            except Exception as error:
                if not self._started:
                    raise
                last = event(error_body(error_info(error)))
            await self._send(send, last + DONE, more=False)

    async def _send_deltas(self, send: Send) -> None:
        async with self._service.running(self._batch) as deltas:
            async for slot, delta in deltas:
                if events := self._writer.events(slot, delta):
                    await self._send(send, events)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if not self._started:
            self._started = True
            headers = [item for item in self.raw_headers if item[0] != b"content-length"]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": more})
