"""Run a request as a turn of a session."""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Delta, GenerateRequest, ModelInfo
from phloem.runtime.sessions.continuation import Continuation
from phloem.runtime.sessions.turn import Turn
from phloem.runtime.validation import token_limit, validate

if TYPE_CHECKING:
    from phloem.runtime.client import Client


async def generate(
    client: Client, where: Continuation, request: GenerateRequest
) -> AsyncGenerator[Delta, None]:
    """The deltas of ``request``, whose ``input_ids`` begin with ``where.history()``.

    The turn is recorded, before its last delta is handed out, if it ended with ``stop`` or
    ``length``. One that was aborted, failed or left early leaves the session as it was.

    Raises (at the first ``__anext__``):
        RequestError: the request is invalid, asks for several sequences, or the session has no
            place for it.
        OverloadedError, EngineDeadError: as ``client.generate`` does.
    """
    validate(request, client.info)
    if request.sampling.n != 1:
        raise RequestError(f"`n` must be 1 in a session, got {request.sampling.n}", param="n")
    session = where.session
    request = msgspec.structs.replace(request, pin_ttl=max(request.pin_ttl, session.timeout))
    output: list[int] = []
    with session.running(where, request.rid, most_tokens(client.info, where, request)):
        async with aclosing(client.generate(request)) as deltas:
            async for delta in deltas:
                output += delta.token_ids
                if delta.finish is not None and delta.finish.reason in ("stop", "length"):
                    session.record(as_turn(where, request, output), replace=where.replace)
                yield delta


def most_tokens(info: ModelInfo, where: Continuation, request: GenerateRequest) -> int:
    """How many tokens of its own a turn may come to have."""
    prompt, wanted = len(request.input_ids), request.sampling.max_new_tokens
    return prompt - where.kept + (token_limit(info) - prompt if wanted is None else wanted)


def as_turn(where: Continuation, request: GenerateRequest, output: list[int]) -> Turn:
    tokens = array("i", request.input_ids[where.kept :])
    tokens.extend(output)
    return Turn(request.rid, where.parent, where.kept, tokens, len(output))
