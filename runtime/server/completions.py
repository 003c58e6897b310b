"""``POST /v1/completions``."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from phloem.runtime.completion import Completion
from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Delta, TokenLogprob
from phloem.runtime.server.completion_logprobs import CompletionLogprobs, CompletionLogprobWriter
from phloem.runtime.server.decode import Schema
from phloem.runtime.server.fields import new_id
from phloem.runtime.server.openai_chunks import Chunks, finish_reason, total_usage
from phloem.runtime.server.openai_request import make_batch
from phloem.runtime.server.openai_types import (
    HARMLESS,
    REFUSED,
    CompletionChoice,
    CompletionRequest,
    CompletionResponse,
    Head,
)
from phloem.runtime.server.openapi import body_of
from phloem.runtime.server.prompts import Prompt, split, token_ids
from phloem.runtime.server.replies import Answer, EventStream, encode
from phloem.runtime.server.service import Service, service_of

DEFAULT_TOKENS = 16
NAMES = {
    "input_ids": "prompt",
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "top_logprobs": "logprobs",
}

router = APIRouter(tags=["OpenAI"])
schema = Schema(CompletionRequest, refused=REFUSED, harmless=HARMLESS)


@router.post("/v1/completions", openapi_extra=body_of(CompletionRequest))
async def completions(request: Request) -> Response:
    """Continue one prompt or several."""
    service = service_of(request)
    decoded = await schema.read(request)
    body = decoded.value
    model = service.check_model(body.model)
    _check_best_of(body)
    prompts = split(body.prompt, "prompt")
    service.check_size(len(prompts), "prompt")
    head = Head(new_id("cmpl-"), "text_completion", int(time.time()), model)
    batch = make_batch(
        service,
        body,
        await token_ids(service, prompts),
        rid=head.id if body.rid is None else body.rid,
        max_tokens=body.max_tokens,
        default_tokens=DEFAULT_TOKENS,
        scores=_scores(body),
        names=NAMES,
        arrived=decoded.arrived,
    )
    choices = _Choices(service, body, prompts, batch.starts)
    if body.stream:
        chunks = Chunks(head, batch.starts[-1], body.stream_options)
        return EventStream(service, batch, _Events(chunks, choices), decoded.headers)
    return Answer(service, batch, partial(_render, head, choices), decoded.headers)


def _check_best_of(body: CompletionRequest) -> None:
    if body.best_of not in (None, 1 if body.n is None else body.n):
        raise RequestError(
            "`best_of` is only supported when equal to `n`",
            param="best_of",
            code="unsupported_field",
        )


def _scores(body: CompletionRequest) -> dict[str, Any]:
    """The fields of GenerateRequest that ask for log-probabilities."""
    if body.logprobs is None:
        return {}
    return {
        "return_logprob": True,
        "logprob_start": 0 if body.echo else None,
        "top_logprobs": body.logprobs,
    }


Piece = tuple[str, CompletionLogprobs | None]
"""A part of a choice: its text and log-probabilities."""


class _Choices:
    """Makes the pieces of all choices, in the order of their texts."""

    def __init__(
        self,
        service: Service,
        body: CompletionRequest,
        prompts: Sequence[Prompt],
        starts: Sequence[int],
    ) -> None:
        self._tokenizer = service.client.tokenizer
        self._prompts = prompts
        self.starts = starts
        self._skip_special = body.skip_special_tokens is not False
        self._scored = body.logprobs is not None
        self.echo_wanted = bool(body.echo)
        self._prompt_logprobs: dict[int, list[TokenLogprob]] = {}
        self._writers = [
            CompletionLogprobWriter(self._tokenizer, skip_special_tokens=self._skip_special)
            for _ in range(starts[-1])
        ]

    def echo(self, slot: int, news: Delta | Completion) -> Piece:
        """The prompt's piece of a choice; ``news`` is the first of the slot."""
        prompt = bisect_right(self.starts, slot) - 1
        if news.prompt_logprobs:
            self._prompt_logprobs[prompt] = news.prompt_logprobs
        text = self._prompts[prompt]
        if not isinstance(text, str):
            text = self._tokenizer.decode(text, skip_special_tokens=self._skip_special)
        if not self._scored:
            return text, None
        entries = self._prompt_logprobs.get(prompt, [])
        return text, self._writers[slot].prompt(entries, text)

    def output(self, slot: int, news: Delta | Completion) -> Piece:
        """The piece of what was generated."""
        if not self._scored:
            return news.text, None
        return news.text, self._writers[slot].output(news.logprobs)

    def whole(self, slot: int, done: Completion) -> Piece:
        """Both pieces of a finished choice."""
        if not self.echo_wanted:
            return self.output(slot, done)
        (text, logprobs), (more_text, more) = self.echo(slot, done), self.output(slot, done)
        if logprobs is not None and more is not None:
            logprobs.extend(more)
        return text + more_text, logprobs


def _render(head: Head, choices: _Choices, completions: list[Completion]) -> bytes:
    return encode(
        CompletionResponse(
            **msgspec.structs.asdict(head),
            choices=[
                CompletionChoice(slot, *choices.whole(slot, done), finish_reason(done))
                for slot, done in enumerate(completions)
            ],
            usage=total_usage(completions, choices.starts),
        )
    )


class _Events:
    """The stream's chunks."""

    def __init__(self, chunks: Chunks, choices: _Choices) -> None:
        self._chunks = chunks
        self._choices = choices
        self.tail = chunks.tail

    def events(self, slot: int, delta: Delta) -> bytes:
        first = self._chunks.see(slot, delta)
        events = b""
        if first and self._choices.echo_wanted:
            events += self._chunk(slot, self._choices.echo(slot, delta))
        if delta.text or delta.logprobs:
            events += self._chunk(slot, self._choices.output(slot, delta))
        if delta.finish is not None:
            events += self._chunk(slot, ("", None), delta.finish.reason)
        return events

    def _chunk(self, slot: int, piece: Piece, reason: str | None = None) -> bytes:
        return self._chunks.chunk(
            slot,
            b'"text":%s,"logprobs":%s,"finish_reason":%s'
            % (encode(piece[0]), encode(piece[1]), encode(reason)),
        )
