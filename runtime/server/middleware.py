"""Pure ASGI middleware: the API key and the limit on bodies.

Starlette's function middleware would pass every streamed token through a queue; these two leave
``send`` alone.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from phloem.runtime.errors import RequestError
from phloem.runtime.server.errors import error_response

OPEN_PATHS = frozenset({"/health"})


class ApiKey:
    """Refuses requests without the key, in constant time; ``/health`` is open to probes."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self.app = app
        self.key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._admits(scope):
            await self.app(scope, receive, send)
            return
        refusal = RequestError("the API key is missing or wrong", code="invalid_api_key")
        await error_response(refusal)(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1"), self.key)


class BodyLimit:
    """Refuses bodies over ``limit`` bytes: by their declared length, or once they exceed it."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limit:
            await error_response(self._refusal())(scope, receive, send)
            return
        await self.app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limit:
                raise self._refusal()
            return message

        return counted

    def _refusal(self) -> RequestError:
        return RequestError(
            f"the body is larger than the limit of {self.limit} bytes", code="body_too_large"
        )
