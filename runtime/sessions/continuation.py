"""Where in a session a turn goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phloem.runtime.errors import RequestError
from phloem.runtime.sessions.turn import Turn, history

if TYPE_CHECKING:
    from phloem.runtime.sessions.session import Session


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where in a session a turn goes on: after the first ``kept`` tokens of ``parent``'s history.

    ``replace``: whether all that went on from ``parent`` is forgotten once the turn is recorded.
    """

    session: Session
    parent: Turn | None = None
    kept: int = 0
    replace: bool = False

    def history(self) -> list[int]:
        """The tokens that the turn's own ones follow."""
        return history(self.parent, self.kept)


def cut(length: int, offset: int | None) -> int:
    """How many of a history's ``length`` tokens ``offset`` keeps, as SGLang counts it.

    0 and None keep all, a negative one counts from the end.

    Raises:
        RequestError: ``offset`` is not within the history.
    """
    if not offset:
        return length
    if abs(offset) > length:
        within = f"[-{length}, {length}] for a history of {length} tokens"
        raise RequestError(f"`offset` must be in {within}, got {offset}", param="offset")
    return offset if offset > 0 else length + offset
