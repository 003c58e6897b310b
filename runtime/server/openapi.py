"""Request bodies in the OpenAPI document, from the structs that decode them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from fastapi import FastAPI

PLACE = "#/components/schemas/"


def body_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """What a route says of its body, as ``openapi_extra``."""
    content = {"application/json": {"schema": {"$ref": PLACE + kind.__name__}}}
    return {"requestBody": {"required": True, "content": content}}


def install_openapi(app: FastAPI, bodies: Iterable[type[msgspec.Struct]]) -> None:
    """Add the schemas of ``bodies`` to the app's document."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        _, schemas = msgspec.json.schema_components(bodies, ref_template=PLACE + "{name}")
        document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
