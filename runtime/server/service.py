"""What every route works with: the client, the settings, the metrics and the running requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field

import msgspec
from fastapi import Request

from phloem.runtime.client import Client
from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Delta, ErrorInfo, SamplingParams
from phloem.runtime.server.collect import Batch, Deltas, run
from phloem.runtime.server.errors import FailedError
from phloem.runtime.server.metrics import BatchTimer, Metrics
from phloem.runtime.server.settings import ServerSettings
from phloem.runtime.server.terms import api_terms
from phloem.runtime.sessions import Sessions
from phloem.runtime.validation import token_limit, validate

DEFAULT_MODEL = "default"
"""The served model's name in programs that do not care, as with SGLang."""

LONG_TEXT = 8192
"""Characters; longer texts are tokenised off the event loop, which they would stall."""


@dataclass(frozen=True, slots=True)
class Service:
    """One server's state. ``active`` holds the ids of running requests."""

    client: Client
    settings: ServerSettings
    metrics: Metrics = field(default_factory=Metrics)
    sessions: Sessions = field(default_factory=Sessions)
    active: set[str] = field(default_factory=set)

    def check_model(self, name: str | None) -> str:
        """The served model's name, if ``name`` may stand for it.

        Raises:
            RequestError: with code ``model_not_found``.
        """
        served = self.client.info.name
        if name in (None, "", DEFAULT_MODEL, served):
            return served
        raise RequestError(
            f"the model `{name}` is not served here; `{served}` is",
            param="model",
            code="model_not_found",
        )

    def check_size(self, sequences: int, param: str) -> None:
        """Refuse a batch of too many sequences before any is made."""
        limit = self.settings.max_batch
        if sequences > limit:
            raise RequestError(
                f"`{param}` asks for {sequences} sequences, the limit is {limit}", param=param
            )

    def with_default_length(
        self, sampling: SamplingParams, default: int | None, prompt_tokens: int
    ) -> SamplingParams:
        """``sampling`` with a length, if it has none: ``default``, or what room there is."""
        if sampling.max_new_tokens is not None or default is None:
            return sampling
        room = token_limit(self.client.info) - prompt_tokens
        return msgspec.structs.replace(sampling, max_new_tokens=max(1, min(default, room)))

    async def encode(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """Token ids of each text; ``special`` adds those that begin a sequence."""

        def encode_all() -> list[list[int]]:
            return [
                self.client.tokenizer.encode(text, add_special_tokens=special) for text in texts
            ]

        if sum(map(len, texts)) < LONG_TEXT:
            return encode_all()
        return await asyncio.to_thread(encode_all)

    @asynccontextmanager
    async def running(self, batch: Batch) -> AsyncIterator[Deltas]:
        """The batch's deltas as they come; what still runs at the exit is aborted.

        Raises (in the body):
            RequestError: a request is invalid; none of the batch was started.
            FailedError: a request failed in the engine; the others were aborted.
            OverloadedError, EngineDeadError: as the client raises them.
            TimeoutError: the batch took longer than the settings allow.
        """
        async with (
            asyncio.timeout(self.settings.request_timeout),
            aclosing(self._run(batch)) as deltas,
        ):
            yield deltas

    async def _run(self, batch: Batch) -> Deltas:
        with (
            api_terms(batch.names),
            self._claimed(batch),
            closing(BatchTimer(self.metrics, batch)) as timer,
        ):
            async with aclosing(run(self.client, batch)) as deltas:
                async for slot, delta in deltas:
                    timer.see(slot, delta)
                    if delta.finish is not None and delta.finish.reason == "error":
                        raise FailedError(_failure(batch, delta))
                    yield slot, delta

    async def abort(self, rid: str | None) -> int:
        """End the request ``rid``, or all for None; how many there were."""
        rids = list(self.active) if rid is None else [rid]
        return sum([await self.client.abort(each) for each in rids])

    @contextmanager
    def _claimed(self, batch: Batch) -> Iterator[None]:
        """Hold the batch's ids, all or none, once all its requests proved valid."""
        for request in batch.requests:
            validate(request, self.client.info)
        rids = {request.rid for request in batch.requests}
        taken = rids & self.active
        if taken or len(rids) < len(batch.requests):
            which = f": {min(taken)!r} is running" if taken else ""
            raise RequestError(f"`rid` must be unique{which}", param="rid", code="duplicate_rid")
        self.active.update(rids)
        try:
            yield
        finally:
            self.active.difference_update(rids)


def _failure(batch: Batch, delta: Delta) -> ErrorInfo:
    """The engine's error; one about the constraint gets the name of the field that set it."""
    finish = delta.finish
    if finish is None or finish.error is None:
        return ErrorInfo(status=500, message="the request failed in the engine")
    if finish.error.status == 400 and finish.error.param is None:
        return msgspec.structs.replace(finish.error, param=batch.names.get("constraint"))
    return finish.error


def service_of(request: Request) -> Service:
    """The service of the app that ``request`` came to."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service
