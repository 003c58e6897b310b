"""Bodies about sessions, as SGLang has them."""

from __future__ import annotations

import msgspec


class OpenSessionBody(msgspec.Struct, kw_only=True):
    """``capacity_of_str_len``: the most tokens that the session's turns may hold together.

    ``timeout``: seconds without a running turn after which the session is closed.
    """

    session_id: str | None = None
    capacity_of_str_len: int | None = None
    timeout: float | None = None


class CloseSessionBody(msgspec.Struct, kw_only=True):
    session_id: str


class SessionParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which session's history a prompt is put behind, and where in it.

    ``rid``: the turn to go on from; without it the latest. ``offset``: cut the history there,
    from its end if negative; 0 leaves it whole. ``replace``: forget what went on from ``rid``
    before; without ``rid``, forget all and begin anew. ``drop_previous_output``: leave out what
    the turn generated.
    """

    id: str
    rid: str | None = None
    offset: int | None = None
    replace: bool | None = None
    drop_previous_output: bool | None = None
