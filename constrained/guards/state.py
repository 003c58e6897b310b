"""A `State` that keeps items of arrays from being there twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from phloem.constrained.bitmask import Row, allocate, pack
from phloem.constrained.guards.lookahead import Lookahead
from phloem.constrained.guards.outline import Outline
from phloem.constrained.guards.stock import Outlook
from phloem.constrained.guards.suspects import suspects
from phloem.constrained.guards.token_classes import Spelling, TokenClasses
from phloem.constrained.guards.tracker import JsonTracker, Mode
from phloem.constrained.state import State

_REMEMBERED = 64
"""Trackers kept for rolling back; beyond, the text is followed again from its start."""


class GuardedState:
    """Walks a state that writes JSON, and forbids the token that ends an item for a second time.

    It also forbids tokens after which nothing but such items could follow, as far as a short
    search can tell.
    """

    __slots__ = (
        "_classes",
        "_index",
        "_inner",
        "_is_narrow",
        "_lookahead",
        "_outline",
        "_tokens",
        "_trackers",
    )

    def __init__(
        self, inner: State, outline: Outline, classes: TokenClasses, index: Spelling
    ) -> None:
        """Guard ``inner``, which stands at the start of the document."""
        self._inner = inner
        self._outline = outline
        self._classes = classes
        self._index = index
        self._lookahead = Lookahead(classes)
        self._is_narrow: bool | None = None
        self._tokens: list[int] = []
        self._trackers = deque([JsonTracker(outline.root)], maxlen=_REMEMBERED)

    @property
    def length(self) -> int:
        return self._inner.length

    @property
    def accepting(self) -> bool:
        return self._inner.accepting

    @property
    def stopped(self) -> bool:
        return self._inner.stopped

    def fill(self, row: Row) -> None:
        self._inner.fill(row)
        self._is_narrow = self._classes.are_few(row)
        for alike in suspects(row, self._tracker, self._classes, self._index):
            if self._after(alike[0]) is None:
                row &= ~pack(alike, self._classes.vocabulary.size)

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return self.copy().advance(tokens)

    def advance(self, tokens: Sequence[int]) -> int:
        for taken, token in enumerate(tokens):
            tracker = self._after(token) if self._inner.valid_prefix((token,)) else None
            if tracker is None or not self._inner.advance((token,)):
                return taken
            self._trackers.append(tracker)
            self._tokens.append(token)
            self._is_narrow = None
        return len(tokens)

    def rollback(self, count: int) -> None:
        self._inner.rollback(count)
        self._lookahead.forget()
        self._is_narrow = None
        del self._tokens[-count:]
        if count < len(self._trackers):
            for _ in range(count):
                self._trackers.pop()
        else:
            self._follow_again()

    def forced(self) -> list[int]:
        tokens = self._inner.forced()
        return tokens[: self.valid_prefix(tokens)] if tokens else []

    def copy(self) -> GuardedState:
        copy = GuardedState(self._inner.copy(), self._outline, self._classes, self._index)
        copy._tokens = self._tokens.copy()
        copy._trackers = self._trackers.copy()
        return copy

    @property
    def _tracker(self) -> JsonTracker:
        return self._trackers[-1]

    def _after(self, token: int) -> JsonTracker | None:
        """The tracker after ``token``, which ``inner`` allows; None if the guard forbids it."""
        data = self._classes.vocabulary.token_bytes[token]
        tracker = self._tracker.copy()
        if not tracker.feed(data):
            return None
        outlook = tracker.outlook()
        if outlook is Outlook.OPEN or _says_nothing(data, self._tracker):
            return tracker
        if outlook is Outlook.DEAD:
            return None
        if not self._is_narrow_here():
            return tracker  # among so many ways there is one that leads on
        beyond = self._inner.copy()
        beyond.advance((token,))
        return tracker if self._lookahead.is_open(beyond, tracker) else None

    def _is_narrow_here(self) -> bool:
        if self._is_narrow is None:
            row = allocate(1, self._classes.vocabulary.size)[0]
            self._inner.fill(row)
            self._is_narrow = self._classes.are_few(row)
        return self._is_narrow

    def _follow_again(self) -> None:
        tracker = JsonTracker(self._outline.root)
        self._trackers.clear()
        self._trackers.append(tracker.copy())
        for token in self._tokens:
            tracker = tracker.copy()
            tracker.feed(self._classes.vocabulary.token_bytes[token])
            self._trackers.append(tracker)


def _says_nothing(data: bytes, before: JsonTracker) -> bool:
    """Whether ``data`` is white space that ends nothing."""
    return data.isspace() and before.mode not in (Mode.STRING, Mode.SCALAR)
