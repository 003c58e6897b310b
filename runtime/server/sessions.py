"""SGLang's routes for sessions, and a session's part in ``POST /generate``."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from phloem.runtime.server.decode import Schema
from phloem.runtime.server.openapi import body_of
from phloem.runtime.server.replies import json_response
from phloem.runtime.server.service import Service, service_of
from phloem.runtime.server.session_types import CloseSessionBody, OpenSessionBody, SessionParams
from phloem.runtime.server.terms import api_terms
from phloem.runtime.sessions import Continuation

OPEN_NAMES = {"capacity": "capacity_of_str_len"}
TURN_NAMES = {
    "session_id": "session_params.id",
    "rid": "session_params.rid",
    "offset": "session_params.offset",
}

router = APIRouter(tags=["sessions"])
open_schema = Schema(OpenSessionBody)
close_schema = Schema(CloseSessionBody)


@router.post("/open_session", openapi_extra=body_of(OpenSessionBody))
async def open_session(request: Request) -> Response:
    """Open a session; the answer is its id."""
    body = (await open_schema.read(request)).value
    with api_terms(OPEN_NAMES):
        session = service_of(request).sessions.open(
            body.session_id, body.capacity_of_str_len, body.timeout
        )
    return json_response(session.id)


@router.post("/close_session", openapi_extra=body_of(CloseSessionBody))
async def close_session(request: Request) -> Response:
    """Forget a session; one that has expired, or never was, is no error."""
    body = (await close_schema.read(request)).value
    return json_response({"closed": service_of(request).sessions.close(body.session_id)})


def continuation(service: Service, params: SessionParams) -> Continuation:
    """Where a turn goes on.

    Raises:
        RequestError: there is no such session, turn or offset.
        OverloadedError: the server's sessions hold as many tokens as they may.
    """
    with api_terms(TURN_NAMES):
        return service.sessions.find(params.id).resume(
            params.rid,
            offset=params.offset,
            replace=bool(params.replace),
            drop_previous_output=bool(params.drop_previous_output),
        )
