"""The server's settings: one annotated struct, from which the command line and docs are made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to listen and what to accept."""

    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port; 0 takes a free one")] = 30000
    api_key: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="key that every route but /health asks for"),
    ] = None
    max_body_bytes: Annotated[
        int, Meta(ge=1024, description="largest accepted body of a request")
    ] = 8 << 20
    max_batch: Annotated[
        int, Meta(ge=1, description="most sequences (prompts times n) of one HTTP request")
    ] = 1024
    request_timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="seconds after which a request is ended"),
    ] = None
    shutdown_grace: Annotated[
        float, Meta(ge=0, description="seconds that running requests get when the server stops")
    ] = 10.0
    access_log: Annotated[bool, Meta(description="log a line for every HTTP request")] = False
