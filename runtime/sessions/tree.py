"""The turns of a session by their ids, each below the one that it goes on from."""

from __future__ import annotations

from collections.abc import Iterable

from phloem.runtime.sessions.turn import Turn


class TurnTree:
    """Recorded turns; ``tokens`` counts the own ones of all."""

    def __init__(self) -> None:
        self.tokens = 0
        # In the order of recording, so parents come before what goes on from them.
        self._turns: dict[str, Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def latest(self) -> Turn | None:
        """The turn that was recorded last."""
        return next(reversed(self._turns.values()), None)

    def get(self, rid: str) -> Turn | None:
        return self._turns.get(rid)

    def holds(self, turn: Turn | None) -> bool:
        """Whether a history may go on from ``turn``; from None, its beginning, it always may."""
        return turn is None or self._turns.get(turn.rid) is turn

    def after(self, turn: Turn | None) -> list[Turn]:
        """What goes on from ``turn``, directly or not; all there is for None."""
        found = {turn}
        for each in self._turns.values():
            if each.parent in found:
                found.add(each)
        return [each for each in found if each is not None and each is not turn]

    def add(self, turn: Turn) -> None:
        self._turns[turn.rid] = turn
        self.tokens += len(turn.tokens)

    def forget(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            del self._turns[turn.rid]
            self.tokens -= len(turn.tokens)
