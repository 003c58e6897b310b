"""Routes that do something other than generating: cache, aborting, tokenising, a probe."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from fastapi import APIRouter, Request, Response

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import GenerateRequest, SamplingParams
from phloem.runtime.server.collect import Batch
from phloem.runtime.server.control_types import AbortBody, DetokenizeBody, TokenizeBody
from phloem.runtime.server.decode import Schema
from phloem.runtime.server.fields import new_id
from phloem.runtime.server.openapi import body_of
from phloem.runtime.server.prompts import split
from phloem.runtime.server.replies import Answer, encode, json_response
from phloem.runtime.server.service import service_of
from phloem.runtime.validation import check_tokens

router = APIRouter(tags=["control"])
abort_schema = Schema(AbortBody)
tokenize_schema = Schema(TokenizeBody)
detokenize_schema = Schema(DetokenizeBody)


@router.get("/health_generate")
async def health_generate(request: Request) -> Response:
    """Whether one token can be generated now; waits its turn like any request."""
    service = service_of(request)
    eos = service.client.info.eos_token_ids
    probe = GenerateRequest(
        rid=new_id("health-"),
        input_ids=[eos[0] if eos else 0],
        sampling=SamplingParams(max_new_tokens=1, temperature=0.0),
    )
    batch = Batch([probe], {}, time.perf_counter())
    return Answer(service, batch, lambda _: encode({"status": "ok"}), {})


@router.post("/flush_cache")
async def flush_cache(request: Request) -> Response:
    """Empty the prefix cache; 409 if requests are running."""
    if not await service_of(request).client.flush_cache():
        raise RequestError("requests are running; the cache was not emptied", code="busy")
    return json_response({"flushed": True})


@router.post("/abort_request", openapi_extra=body_of(AbortBody))
async def abort_request(request: Request) -> Response:
    """End one request by its id, or all; they finish with the reason ``abort``."""
    service = service_of(request)
    body = (await abort_schema.read(request)).value
    if not body.abort_all and body.rid is None:
        raise RequestError("one of `rid` and `abort_all` is required", param="rid")
    aborted = await service.abort(None if body.abort_all else body.rid)
    return json_response({"aborted": aborted})


@router.post("/tokenize", openapi_extra=body_of(TokenizeBody))
@router.post("/v1/tokenize", openapi_extra=body_of(TokenizeBody), include_in_schema=False)
async def tokenize(request: Request) -> Response:
    """Token ids of a text, or of each of a list."""
    service = service_of(request)
    body = (await tokenize_schema.read(request)).value
    service.check_model(body.model)
    texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    ids = await service.encode(texts, special=body.add_special_tokens is not False)
    counts = [len(each) for each in ids]
    single = isinstance(body.prompt, str)
    return json_response(
        {
            "tokens": ids[0] if single else ids,
            "count": counts[0] if single else counts,
            "max_model_len": service.client.info.context_length,
        }
    )


@router.post("/detokenize", openapi_extra=body_of(DetokenizeBody))
@router.post("/v1/detokenize", openapi_extra=body_of(DetokenizeBody), include_in_schema=False)
async def detokenize(request: Request) -> Response:
    """Text of token ids, or of each list of a list."""
    service = service_of(request)
    body = (await detokenize_schema.read(request)).value
    service.check_model(body.model)
    tokenizer = service.client.tokenizer
    skip = body.skip_special_tokens is not False
    lists = cast("list[list[int]]", split(body.tokens, "tokens")) if body.tokens else [[]]
    for ids in lists:
        check_tokens("tokens", ids, service.client.info.vocab_size)

    def decode_all() -> list[str]:
        return [tokenizer.decode(ids, skip_special_tokens=skip) for ids in lists]

    texts = await asyncio.to_thread(decode_all)
    single = not body.tokens or isinstance(body.tokens[0], int)
    return json_response({"text": texts[0] if single else texts})
