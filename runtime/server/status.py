"""Routes that tell about the server: models, health, configuration, metrics, version."""

from __future__ import annotations

import time
from importlib.metadata import version as installed
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from phloem.runtime.server.replies import json_response
from phloem.runtime.server.service import Service, service_of

router = APIRouter(tags=["status"])
STARTED = int(time.time())


@router.get("/health")
@router.head("/health", include_in_schema=False)
async def health(request: Request) -> Response:
    """Whether the engine lives; asks nothing of it, so a long prefill does not matter."""
    if service_of(request).client.healthy:
        return json_response({"status": "ok"})
    return json_response({"status": "the engine is dead"}, 503)


@router.get("/version")
async def version() -> Response:
    return json_response({"version": installed("phloem")})


@router.get("/v1/models")
async def models(request: Request) -> Response:
    return json_response({"object": "list", "data": [_model(service_of(request))]})


@router.get("/v1/models/{name:path}")
async def model(request: Request, name: str) -> Response:
    service = service_of(request)
    service.check_model(name)
    return json_response(_model(service))


def _model(service: Service) -> dict[str, Any]:
    info = service.client.info
    return {
        "id": info.name,
        "object": "model",
        "created": STARTED,
        "owned_by": "phloem",
        "root": info.path,
        "max_model_len": info.context_length,
    }


@router.get("/model_info")
@router.get("/get_model_info", include_in_schema=False)
async def model_info(request: Request) -> Response:
    client = service_of(request).client
    info = msgspec.to_builtins(client.info)
    return json_response(
        {
            **info,
            "model_path": client.info.path,
            "tokenizer_path": client.info.path,
            "is_generation": True,
            "chat_template": client.tokenizer.chat_template,
        }
    )


@router.get("/server_info")
@router.get("/get_server_info", include_in_schema=False)
async def server_info(request: Request) -> Response:
    """Model, settings and, under the name that SGLang's tools read, the engine's counters."""
    service = service_of(request)
    stats = msgspec.structs.asdict(await service.client.stats())
    settings = msgspec.structs.asdict(service.settings)
    del settings["api_key"]
    return json_response(
        {
            "version": installed("phloem"),
            "model_path": service.client.info.path,
            "model": service.client.info,
            "settings": settings,
            "internal_states": [stats],
        }
    )


@router.get("/metrics")
@router.head("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Prometheus' text format."""
    service = service_of(request)
    text = service.metrics.render(await service.client.stats())
    return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})
