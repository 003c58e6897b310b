"""The engine's loop: take commands, step, send replies, until told to stop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, assert_never

from phloem.runtime.engine import EngineCore
from phloem.runtime.protocol import Delta, ErrorInfo, Finish, GenerateRequest
from phloem.runtime.wire import (
    Abort,
    Add,
    Command,
    Flush,
    Flushed,
    GetStats,
    News,
    Reply,
    Shutdown,
    Stats,
)

logger = logging.getLogger(__name__)

COMPILE_POLL = 0.002
"""Seconds between looks at a grammar that is being compiled while nothing else runs."""

IDLE_POLL = 1.0
"""Seconds between looks at whether the client still lives."""


class Link(Protocol):
    """The engine's end of a connection to its client."""

    def receive(self, timeout: float) -> Sequence[Command]:
        """Commands that have come; waits up to ``timeout`` seconds for the first."""

    def send(self, reply: Reply) -> None:
        """Hand a reply to the client."""


def run(core: EngineCore, link: Link) -> None:
    """Serve commands until Shutdown."""
    while True:
        for command in link.receive(patience(core)):
            if isinstance(command, Shutdown):
                core.close()
                return
            obey(core, command, link)
        deltas = core.step()
        if deltas:
            link.send(News(deltas))


def patience(core: EngineCore) -> float:
    """How long the loop may wait for commands now, in seconds."""
    if core.has_work:
        return 0.0
    return COMPILE_POLL if core.is_compiling else IDLE_POLL


def obey(core: EngineCore, command: Add | Abort | Flush | GetStats, link: Link) -> None:
    match command:
        case Add(request):
            try:
                core.add(request)
            except Exception as error:
                logger.exception("request %s could not be taken", request.rid)
                link.send(News(refusals(request, error)))
        case Abort(rid):
            core.abort(rid)
        case Flush(ticket):
            link.send(Flushed(ticket, core.flush_cache()))
        case GetStats(ticket):
            link.send(Stats(ticket, core.stats()))
        case _:
            assert_never(command)


def refusals(request: GenerateRequest, error: Exception) -> list[Delta]:
    """The only deltas of a request that never started."""
    finish = Finish(reason="error", error=ErrorInfo(status=500, message=str(error)))
    return [
        Delta(rid=request.rid, index=index, finish=finish) for index in range(request.sampling.n)
    ]
