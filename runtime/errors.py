"""Errors as types that carry the data explaining them; the HTTP layer alone makes status codes."""

from __future__ import annotations


class PhloemError(Exception):
    """Base of every error that Phloem raises on purpose."""


class RequestError(PhloemError):
    """A request that cannot be served as sent.

    ``param`` names the offending field, ``code`` is a stable machine-readable word and
    ``pointer`` the JSON pointer inside a schema, where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str = "invalid_request",
        pointer: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.pointer = pointer


class OverloadedError(PhloemError):
    """The engine's queue is full; the request may be sent again later."""


class EngineDeadError(PhloemError):
    """The engine stopped; no request can be served until it is started again."""


class GenerationError(PhloemError):
    """One request failed inside the engine; others are unaffected."""


class ModelError(PhloemError):
    """A model cannot be found, fetched, read or understood."""
