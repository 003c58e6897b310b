"""Errors to HTTP answers: the one place where status codes are made.

Every failure becomes an ``ErrorInfo``, and that one body, OpenAI's:
``{"error": {"message", "type", "param", "code"}}``, plus ``pointer`` into a schema.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from phloem.runtime.errors import EngineDeadError, OverloadedError, PhloemError, RequestError
from phloem.runtime.protocol import ErrorInfo

logger = logging.getLogger(__name__)

STATUS_OF_CODE: Mapping[str, int] = {
    "invalid_api_key": 401,
    "model_not_found": 404,
    "busy": 409,
    "body_too_large": 413,
}
"""Status of a RequestError by its code; others are 400."""

TYPE_OF_STATUS: Mapping[int, str] = {
    401: "authentication_error",
    404: "not_found_error",
    503: "service_unavailable_error",
    504: "timeout_error",
}

RETRY_AFTER_SECONDS = 1


class FailedError(PhloemError):
    """A request that the engine ended with an error."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


def error_info(error: Exception) -> ErrorInfo:
    """What to tell the client; an error that nobody foresaw is logged and told as such."""
    match error:
        case FailedError():
            return error.info
        case RequestError():
            return ErrorInfo(
                status=STATUS_OF_CODE.get(error.code, 400),
                message=error.message,
                code=error.code,
                param=error.param,
                pointer=error.pointer,
            )
        case OverloadedError():
            return ErrorInfo(status=503, message=_text(error), code="overloaded")
        case EngineDeadError():
            return ErrorInfo(status=503, message=_text(error), code="engine_dead")
        case RecursionError():
            return ErrorInfo(
                status=400, message="the body is nested too deeply", code="invalid_json"
            )
        case ClientDisconnect():
            return ErrorInfo(status=400, message="the client left", code="disconnected")
        case TimeoutError():
            return ErrorInfo(status=504, message="the request took too long", code="timeout")
        case HTTPException():
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return ErrorInfo(status=error.status_code, message=error.detail, code=code)
    logger.error("a request failed unexpectedly", exc_info=error)
    return ErrorInfo(status=500, message="internal error; the server's log has the cause")


def _text(error: Exception) -> str:
    return str(error) or (type(error).__doc__ or "")


class _ErrorDetail(msgspec.Struct, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str
    pointer: str | msgspec.UnsetType = msgspec.UNSET


class _ErrorBody(msgspec.Struct):
    error: _ErrorDetail


def error_body(info: ErrorInfo) -> bytes:
    fallback = "invalid_request_error" if info.status < 500 else "server_error"
    return msgspec.json.encode(
        _ErrorBody(
            _ErrorDetail(
                message=info.message,
                type=TYPE_OF_STATUS.get(info.status, fallback),
                param=info.param,
                code=info.code,
                pointer=msgspec.UNSET if info.pointer is None else info.pointer,
            )
        )
    )


def error_response(error: Exception) -> Response:
    info = error_info(error)
    headers = {}
    if info.status == 401:
        headers["www-authenticate"] = "Bearer"
    if info.status == 503:
        headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    return Response(error_body(info), info.status, headers, media_type="application/json")


async def _handle(_request: Request, error: Exception) -> Response:
    return error_response(error)


def install_error_handlers(app: FastAPI) -> None:
    kinds = (PhloemError, RecursionError, ClientDisconnect, TimeoutError, HTTPException, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, _handle)
