"""Messages between a client and the engine's loop, in msgspec's msgpack on a socket."""

from __future__ import annotations

import msgspec

from phloem.runtime.protocol import Delta, EngineStats, GenerateRequest, ModelInfo


class Add(msgspec.Struct, frozen=True, tag=True):
    """Start a request."""

    request: GenerateRequest


class Abort(msgspec.Struct, frozen=True, tag=True):
    """End a request early; unknown ids are ignored, since the request may just have ended."""

    rid: str


class Flush(msgspec.Struct, frozen=True, tag=True):
    """Empty the prefix cache; answered by Flushed."""

    ticket: int


class GetStats(msgspec.Struct, frozen=True, tag=True):
    """Answered by Stats."""

    ticket: int


class Shutdown(msgspec.Struct, frozen=True, tag=True):
    """End the loop after the current step."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The model is loaded and the loop runs."""

    info: ModelInfo


class Dead(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot go on (or could not start); the last message."""

    message: str


class News(msgspec.Struct, frozen=True, tag=True):
    """The deltas of one step."""

    deltas: list[Delta]


class Flushed(msgspec.Struct, frozen=True, tag=True):
    ticket: int
    done: bool


class Stats(msgspec.Struct, frozen=True, tag=True):
    ticket: int
    stats: EngineStats


Command = Add | Abort | Flush | GetStats | Shutdown
Reply = Ready | Dead | News | Flushed | Stats
