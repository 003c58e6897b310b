"""Sessions without an engine: turns that end as a test says."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from phloem.runtime.sessions import Continuation, Session, Turn


@dataclass
class Clock:
    """Seconds that pass only on demand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def as_turn(
    where: Continuation, rid: str, prompt: Sequence[int], output: Sequence[int] = ()
) -> Turn:
    return Turn(rid, where.parent, where.kept, array("i", [*prompt, *output]), len(output))


def say(
    where: Continuation, rid: str, prompt: Sequence[int], output: Sequence[int] = ()
) -> list[int]:
    """Run a turn to a good end; the history that ends with it."""
    session = where.session
    with session.running(where, rid, len(prompt) + len(output)):
        session.record(as_turn(where, rid, prompt, output), replace=where.replace)
    return session.after(session.turn(rid)).history()


def history(session: Session, rid: str | None = None) -> list[int]:
    """All tokens up to the end of a turn, by default the latest."""
    return session.resume(rid).history()
