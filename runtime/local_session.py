"""A session of the engine in this process, called synchronously."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from types import TracebackType

from phloem.runtime.background import BackgroundLoop
from phloem.runtime.client import Client
from phloem.runtime.completion import Completion, collect
from phloem.runtime.errors import RequestError
from phloem.runtime.local_request import Prompt, Sampling, make_request, token_ids
from phloem.runtime.protocol import Delta, GenerateRequest
from phloem.runtime.sessions import Continuation, Session, Turn, generate


class LocalSession:
    """A conversation in which each call goes on from what was said before.

    ``Engine.open_session`` makes it. It does not expire: after the session's ``timeout`` the cache
    may lose its tokens, which are then computed again. A call that fails or is left early changes
    nothing.
    """

    def __init__(
        self, client: Client, loop: BackgroundLoop, session: Session, turn: Turn | None = None
    ) -> None:
        self._client = client
        self._loop = loop
        self._session = session
        self._turn = turn
        self._closed = False

    @property
    def token_ids(self) -> list[int]:
        """All that was said so far, by both sides."""
        return self._session.after(self._turn).history()

    def generate(self, prompt: Prompt, sampling: Sampling = None) -> Completion:
        """Say ``prompt`` (text, or token ids) and wait for the answer.

        Raises:
            RequestError: the prompt or a parameter is invalid, the capacity is exceeded, or the
                session was closed.
            GenerationError: the request failed.
        """
        where, request = self._next(prompt, sampling, stream=False)
        try:
            return self._loop.run(self._answer(where, request))
        finally:
            self._go_on(request.rid)

    def stream(self, prompt: Prompt, sampling: Sampling = None) -> Iterator[Delta]:
        """Say ``prompt``; the answer's deltas as they are made."""
        where, request = self._next(prompt, sampling, stream=True)
        try:
            yield from self._loop.stream(generate(self._client, where, request))
        finally:
            self._go_on(request.rid)

    def branch(self) -> LocalSession:
        """Another session with the same past, independent of this one from now on.

        Both count towards one capacity.
        """
        self._require_open()
        return LocalSession(self._client, self._loop, self._session, self._turn)

    def close(self) -> None:
        """Take no further calls; branches stay open."""
        self._closed = True

    def __enter__(self) -> LocalSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _next(
        self, prompt: Prompt, sampling: Sampling, *, stream: bool
    ) -> tuple[Continuation, GenerateRequest]:
        self._require_open()
        where = self._session.after(self._turn)
        history = where.history()
        new = token_ids(self._client.tokenizer, prompt, special=not history)
        return where, make_request(history + new, sampling, stream=stream)

    async def _answer(self, where: Continuation, request: GenerateRequest) -> Completion:
        async with aclosing(generate(self._client, where, request)) as deltas:
            [completion] = await collect(deltas, 1)
        return completion

    def _go_on(self, rid: str) -> None:
        """Go on from the turn of that id, if it was recorded."""
        self._turn = self._session.turn(rid) or self._turn

    def _require_open(self) -> None:
        if self._closed:
            raise RequestError("the session was closed", code="session_closed")
