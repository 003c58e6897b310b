"""The state of an engine whose places can be remembered: the path to where the sequence stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from phloem.constrained.bitmask import Row

Place = TypeVar("Place")


class TokenAutomaton(Protocol[Place]):
    """Places and the tokens that lead from one to the next; immutable, shared by all states."""

    def accepts(self, place: Place) -> bool:
        """Whether the text may end here."""

    def stops(self, place: Place) -> bool:
        """Whether it must."""

    def fill(self, place: Place, row: Row) -> None:
        """Overwrite ``row`` with the tokens that may follow."""

    def after(self, place: Place, token: int) -> Place | None:
        """The place once ``token`` is taken; None if it may not follow."""

    def forced(self, place: Place) -> list[int]:
        """See ``State.forced``."""


class PathState(Generic[Place]):
    """A `State` of places of an automaton; the last is where the sequence stands."""

    __slots__ = ("_automaton", "_path")

    def __init__(self, automaton: TokenAutomaton[Place], path: list[Place]) -> None:
        self._automaton = automaton
        self._path = path

    @property
    def length(self) -> int:
        return len(self._path) - 1

    @property
    def accepting(self) -> bool:
        return self._automaton.accepts(self._path[-1])

    @property
    def stopped(self) -> bool:
        return self._automaton.stops(self._path[-1])

    def fill(self, row: Row) -> None:
        self._automaton.fill(self._path[-1], row)

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return len(self._walk(tokens))

    def advance(self, tokens: Sequence[int]) -> int:
        places = self._walk(tokens)
        self._path.extend(places)
        return len(places)

    def rollback(self, count: int) -> None:
        del self._path[len(self._path) - count :]

    def forced(self) -> list[int]:
        return self._automaton.forced(self._path[-1])

    def copy(self) -> PathState[Place]:
        return PathState(self._automaton, self._path.copy())

    def _walk(self, tokens: Sequence[int]) -> list[Place]:
        places: list[Place] = []
        for token in tokens:
            after = self._automaton.after(places[-1] if places else self._path[-1], token)
            if after is None:
                break
            places.append(after)
        return places
