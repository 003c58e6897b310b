"""``POST /generate``, SGLang's native API."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from msgspec import UNSET

from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Delta
from phloem.runtime.server.decode import Schema
from phloem.runtime.server.native_reply import Results
from phloem.runtime.server.native_request import is_single, make_batch
from phloem.runtime.server.native_types import REFUSED, GenerateBody
from phloem.runtime.server.openapi import body_of
from phloem.runtime.server.replies import Answer, EventStream, encode, event
from phloem.runtime.server.service import service_of

router = APIRouter(tags=["native"])
schema = Schema(GenerateBody, refused=REFUSED)


@router.post("/generate", openapi_extra=body_of(GenerateBody))
async def generate(request: Request) -> Response:
    """Continue one prompt or several, as SGLang's server does."""
    service = service_of(request)
    decoded = await schema.read(request)
    batch = await make_batch(service, decoded)
    show_text = bool(decoded.value.return_text_in_logprobs)
    results = Results(batch, service.client.tokenizer if show_text else None)
    alone = is_single(decoded.value) and len(results) == 1
    if decoded.value.stream:
        return EventStream(service, batch, _Events(results, alone), decoded.headers)

    def render(completions: list[Completion]) -> bytes:
        made = [results.make(slot, completions) for slot in range(len(results))]
        return encode(made[0] if alone else made)

    return Answer(service, batch, render, decoded.headers)


class _Events:
    """The stream's events, each a whole result of one slot so far."""

    def __init__(self, results: Results, alone: bool) -> None:
        self._results = results
        self._alone = alone
        self._completions = [Completion(slot) for slot in range(len(results))]

    def events(self, slot: int, delta: Delta) -> bytes:
        self._completions[slot].add(delta)
        result = self._results.make(slot, self._completions)
        result.index = UNSET if self._alone else slot
        return event(encode(result))

    def tail(self) -> bytes:
        return b""
