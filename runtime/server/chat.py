"""``POST /v1/chat/completions``."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import APIRouter, Request, Response

from phloem.runtime.completion import Completion
from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Delta
from phloem.runtime.server.chat_logprobs import chat_logprobs
from phloem.runtime.server.decode import Schema, unsupported
from phloem.runtime.server.fields import new_id
from phloem.runtime.server.messages import prompt_ids
from phloem.runtime.server.openai_chunks import Chunks, finish_reason, total_usage
from phloem.runtime.server.openai_request import make_batch
from phloem.runtime.server.openai_types import (
    HARMLESS,
    REFUSED,
    AssistantMessage,
    ChatChoice,
    ChatRequest,
    ChatResponse,
    Head,
)
from phloem.runtime.server.openapi import body_of
from phloem.runtime.server.replies import Answer, EventStream, encode
from phloem.runtime.server.service import service_of

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer

router = APIRouter(tags=["OpenAI"])
schema = Schema(ChatRequest, refused=REFUSED | {"echo", "input_ids", "best_of"}, harmless=HARMLESS)


@router.post("/v1/chat/completions", openapi_extra=body_of(ChatRequest))
async def chat_completions(request: Request) -> Response:
    """Continue a conversation."""
    service = service_of(request)
    decoded = await schema.read(request)
    body = decoded.value
    model = service.check_model(body.model)
    _check_tools(body)
    _check_modalities(body)
    head = Head(new_id("chatcmpl-"), "chat.completion", int(time.time()), model)
    limit = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    batch = make_batch(
        service,
        body,
        [await prompt_ids(service, body)],
        rid=head.id if body.rid is None else body.rid,
        max_tokens=getattr(body, limit),
        default_tokens=None,
        scores=_scores(body),
        names={"input_ids": "messages", "max_new_tokens": limit, "min_new_tokens": "min_tokens"},
        arrived=decoded.arrived,
    )
    tokenizer = service.client.tokenizer if body.logprobs else None
    if body.stream:
        head = msgspec.structs.replace(head, object="chat.completion.chunk")
        chunks = Chunks(head, batch.starts[-1], body.stream_options)
        return EventStream(service, batch, _Events(chunks, tokenizer), decoded.headers)
    return Answer(service, batch, partial(_render, head, tokenizer), decoded.headers)


def _check_tools(body: ChatRequest) -> None:
    if body.tool_choice == "none":
        return
    if body.tools:
        raise unsupported("tools")
    if body.tool_choice not in (None, "auto"):
        raise unsupported("tool_choice")


def _check_modalities(body: ChatRequest) -> None:
    if body.modalities not in (None, [], ["text"]):
        raise unsupported("modalities")


def _scores(body: ChatRequest) -> dict[str, Any]:
    """The fields of GenerateRequest that ask for log-probabilities."""
    if body.logprobs:
        return {"return_logprob": True, "top_logprobs": body.top_logprobs or 0}
    if body.top_logprobs:
        raise RequestError("`top_logprobs` needs `logprobs` to be true", param="top_logprobs")
    return {}


def _render(head: Head, tokenizer: Tokenizer | None, completions: list[Completion]) -> bytes:
    def choice(slot: int, done: Completion) -> ChatChoice:
        scores = None if tokenizer is None else chat_logprobs(done.logprobs, tokenizer)
        return ChatChoice(slot, AssistantMessage(done.text), scores, finish_reason(done))

    fields: dict[str, Any] = msgspec.structs.asdict(head)
    return encode(
        ChatResponse(
            **fields,
            choices=[choice(*each) for each in enumerate(completions)],
            usage=total_usage(completions, [0, len(completions)]),
        )
    )


class _Events:
    """The stream's chunks: for each choice its role, its contents and one end."""

    def __init__(self, chunks: Chunks, tokenizer: Tokenizer | None) -> None:
        self._chunks = chunks
        self._tokenizer = tokenizer
        self.tail = chunks.tail

    def events(self, slot: int, delta: Delta) -> bytes:
        events = b""
        if self._chunks.see(slot, delta):
            events += self._chunk(slot, b'{"role":"assistant","content":""}')
        if delta.text or delta.logprobs:
            scores = b"null"
            if self._tokenizer is not None:
                scores = encode(chat_logprobs(delta.logprobs, self._tokenizer))
            events += self._chunk(slot, b'{"content":%s}' % encode(delta.text), scores)
        if delta.finish is not None:
            events += self._chunk(slot, b"{}", b"null", encode(delta.finish.reason))
        return events

    def _chunk(
        self, slot: int, delta: bytes, scores: bytes = b"null", reason: bytes = b"null"
    ) -> bytes:
        return self._chunks.chunk(
            slot, b'"delta":%s,"logprobs":%s,"finish_reason":%s' % (delta, scores, reason)
        )
