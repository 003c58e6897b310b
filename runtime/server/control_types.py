"""Bodies of the routes about the server itself."""

from __future__ import annotations

import msgspec


class AbortBody(msgspec.Struct, kw_only=True):
    rid: str | None = None
    abort_all: bool | None = None


class TokenizeBody(msgspec.Struct, kw_only=True):
    prompt: str | list[str]
    model: str | None = None
    add_special_tokens: bool | None = None


class DetokenizeBody(msgspec.Struct, kw_only=True):
    tokens: list[int | list[int]]
    model: str | None = None
    skip_special_tokens: bool | None = None
