"""Whether a text can still become another item than those before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from phloem.constrained import bitmask
from phloem.constrained.errors import GrammarLimit
from phloem.constrained.guards.stock import Outlook
from phloem.constrained.guards.token_classes import TokenClasses
from phloem.constrained.guards.tracker import JsonTracker
from phloem.constrained.state import State

_MOST_MASKS = 16
"""Filled for one question. Beyond, a text is taken to be able to go on."""

_MOST_TOKENS = 256
"""Of one mask; a larger one in which all of them follow earlier items is not met."""


class Lookahead:
    """A search, depth first, for a continuation that parts from all earlier items.

    It remembers its answers while one item of the outermost array is written.
    """

    def __init__(self, classes: TokenClasses) -> None:
        self._classes = classes
        self._answers: dict[tuple[bytes, tuple[int, ...]], bool] = {}
        self._texts: tuple[bytes, ...] = ()

    def is_open(self, state: State, tracker: JsonTracker) -> bool:
        """Whether ``state``, where ``tracker`` stands too, is no dead end."""
        texts = next((frame.texts for frame in tracker.frames if frame.stock is not None), ())
        if texts != self._texts:
            self._texts = texts
            self._answers.clear()
        question = tracker.text, tuple(frame.before for frame in tracker.frames)
        answer = self._answers.get(question)
        if answer is None:
            search = _Search(self._classes)
            answer = self._answers[question] = search.finds_way_out(state, tracker)
        return answer

    def forget(self) -> None:
        """Other text now goes before what the answers were about."""
        self._answers.clear()


class _Search:
    def __init__(self, classes: TokenClasses) -> None:
        self._classes = classes
        self._masks_left = _MOST_MASKS

    def finds_way_out(self, state: State, tracker: JsonTracker) -> bool:
        if self._masks_left == 0:
            return True
        self._masks_left -= 1
        unclear: list[tuple[int, JsonTracker]] = []
        for token in self._allowed(state):
            after = tracker.copy()
            if not after.feed(self._classes.vocabulary.token_bytes[token]):
                continue
            outlook = after.outlook()
            if outlook is Outlook.OPEN:
                return True
            if outlook is Outlook.UNCLEAR:
                unclear.append((token, after))
        return any(self.finds_way_out(_after(state, token), after) for token, after in unclear)

    def _allowed(self, state: State) -> Iterator[int]:
        row = bitmask.allocate(1, self._classes.vocabulary.size)[0]
        try:
            state.fill(row)
        except GrammarLimit:
            return iter(())
        return islice(bitmask.few(row & self._classes.visible), _MOST_TOKENS)


def _after(state: State, token: int) -> State:
    state = state.copy()
    state.advance((token,))
    return state
