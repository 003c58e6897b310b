"""JSON and server-sent events over HTTP, with the runtime's errors. Nothing is sent twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from phloem.runtime.errors import (
    EngineDeadError,
    GenerationError,
    OverloadedError,
    PhloemError,
    RequestError,
)

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0


class Transport:
    """One server's address, and a connection pool in the frontend's event loop.

    Raises (by all methods):
        RequestError: the server refused the request; code and parameter are the server's.
        OverloadedError, EngineDeadError: it cannot serve now, or cannot be reached.
        GenerationError: it failed, or did not answer in time.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout: float) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise RequestError(
                f"base_url must begin with http:// or https://, got {base_url!r}", param="base_url"
            )
        self._base_url = base_url.rstrip("/")
        self._headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._timeout = timeout

    async def get(self, path: str) -> Any:
        """The JSON that ``path`` answers with."""
        with self._translated():
            response = await self._client.get(path)
        return _checked(response.status_code, response.content)

    async def post(self, path: str, body: Any) -> Any:
        """The JSON that ``path`` answers ``body`` with."""
        with self._translated():
            response = await self._client.post(path, content=_encoded(body))
        return _checked(response.status_code, response.content)

    async def stream(self, path: str, body: Any) -> AsyncIterator[Any]:
        """The JSON of each event that ``path`` answers ``body`` with, up to ``[DONE]``."""
        with self._translated():
            request = self._client.stream("POST", path, content=_encoded(body))
            async with request as response:
                if response.status_code != 200:
                    _checked(response.status_code, await response.aread())
                async for data in events(response.aiter_bytes()):
                    if data == b"[DONE]":
                        return
                    yield _checked_event(data)
        raise GenerationError(f"{self._base_url} ended its stream early")

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(
            base_url=self._base_url,
            headers={"content-type": "application/json", **self._headers},
            timeout=httpx.Timeout(self._timeout, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.TimeoutException as error:
            raise GenerationError(
                f"{self._base_url} did not answer within {self._timeout:g} s"
            ) from error
        except httpx.TransportError as error:
            raise EngineDeadError(f"{self._base_url} cannot be reached: {error}") from error


def _encoded(body: Any) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text holds a lone surrogate at character {error.start}", param="text"
        ) from None


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Only ``\\n`` ends a line: texts hold other breaks."""
    pending = b""
    async for chunk in chunks:
        *whole, pending = (pending + chunk).split(b"\n\n")
        for event in whole:
            yield event.removeprefix(b"data: ")


def _checked(status: int, content: bytes) -> Any:
    """The JSON in ``content``, unless ``status`` tells of an error."""
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        raise GenerationError(f"the server answered {status} without JSON") from None
    if status >= 400:
        raise _as_exception(status, value)
    return value


def _checked_event(data: bytes) -> Any:
    value = msgspec.json.decode(data)
    if "error" in value:
        raise _as_exception(500, value)
    return value


def _as_exception(status: int, body: Any) -> PhloemError:
    """What ``{"error": {message, type, param, code, pointer}}`` stands for."""
    error = body.get("error") if isinstance(body, dict) else None
    fields = error if isinstance(error, dict) else {}
    message, code = fields.get("message", f"the server answered {status}"), fields.get("code")
    if code == "overloaded":
        return OverloadedError(message)
    if code == "engine_dead":
        return EngineDeadError(message)
    if status < 500 or fields.get("type") == "invalid_request_error":
        return RequestError(
            message,
            param=fields.get("param"),
            code=code or "invalid_request",
            pointer=fields.get("pointer"),
        )
    return GenerationError(message)
