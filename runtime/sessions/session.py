"""One session: where a turn may go on, which turns run, and which have been recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from phloem.runtime.errors import RequestError
from phloem.runtime.sessions.continuation import Continuation, cut
from phloem.runtime.sessions.tree import TurnTree
from phloem.runtime.sessions.turn import Turn
from phloem.runtime.validation import MAX_PIN_SECONDS, Bound

DEFAULT_TIMEOUT = 600.0
TIMEOUT = Bound(0, MAX_PIN_SECONDS, above_low=True)
CAPACITY = Bound(1, integer=True)


class Session:
    """A conversation's tokens, as a tree of turns.

    Attributes:
        id: its name.
        capacity: the most tokens that its turns may hold together; None for no limit.
        timeout: seconds without a running turn after which it is ``expired``, and for which the
            cache is asked to keep a turn's tokens after its end.

    Raises (when made):
        RequestError: ``capacity`` or ``timeout`` is out of its limits.
    """

    def __init__(
        self,
        session_id: str,
        capacity: int | None = None,
        timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = session_id
        self.capacity = capacity
        self.timeout = DEFAULT_TIMEOUT if timeout is None else timeout
        if capacity is not None and not CAPACITY.allows(capacity):
            raise _refuse("capacity", f"must be {CAPACITY}, got {capacity!r}")
        if not TIMEOUT.allows(self.timeout):
            raise _refuse("timeout", f"must be {TIMEOUT}, got {timeout!r}")
        self._clock = clock
        self._idle_since = clock()
        self._tree = TurnTree()
        # By rid, the most tokens that each running turn may add.
        self._running: dict[str, int] = {}

    @property
    def expired(self) -> bool:
        """Whether no turn has run for ``timeout`` seconds."""
        return not self._running and self._clock() - self._idle_since >= self.timeout

    @property
    def tokens(self) -> int:
        """Tokens of all recorded turns, and those that the running ones may add."""
        return self._tree.tokens + sum(self._running.values())

    @property
    def turns(self) -> int:
        """How many are recorded."""
        return len(self._tree)

    def turn(self, rid: str) -> Turn | None:
        """A recorded turn by its request's id."""
        return self._tree.get(rid)

    def after(self, turn: Turn | None) -> Continuation:
        """Going on at the end of ``turn``, or with an empty history for None."""
        return Continuation(self, turn, 0 if turn is None else turn.length)

    def resume(
        self,
        rid: str | None = None,
        *,
        offset: int | None = None,
        replace: bool = False,
        drop_previous_output: bool = False,
    ) -> Continuation:
        """Where SGLang's ``session_params`` say that a turn goes on.

        Without ``rid`` that is the latest turn, with ``replace`` too the beginning. ``offset``
        cuts the history there, from its end if negative; 0 and None leave it whole, and where no
        turn precedes there is nothing to cut. ``drop_previous_output`` leaves out what the turn
        generated.

        Raises:
            RequestError: ``rid`` is unknown, or ``offset`` is not within the history.
        """
        if rid is None and replace:
            return Continuation(self, replace=True)
        parent = self._tree.latest if rid is None else self._find(rid)
        if parent is None:
            return Continuation(self)
        length = parent.length - (parent.output_tokens if drop_previous_output else 0)
        return Continuation(self, parent, cut(length, offset), replace)

    @contextmanager
    def running(self, where: Continuation, rid: str, most: int) -> Iterator[None]:
        """Hold room for a turn of at most ``most`` own tokens while the ``with`` runs it.

        Raises:
            RequestError: the turn is empty or exceeds the capacity, or the session has its rid.
        """
        if self._tree.get(rid) is not None or rid in self._running:
            raise _refuse("rid", f"{rid!r} is a turn of the session already", "duplicate_rid")
        self._check_room(where, most)
        self._running[rid] = most
        try:
            yield
        finally:
            self._end(rid)

    def record(self, turn: Turn, *, replace: bool = False) -> None:
        """Take a running turn that has finished well.

        It is dropped if what it goes on from has been forgotten meanwhile.
        """
        self._end(turn.rid)
        if not self._tree.holds(turn.parent):
            return
        if replace:
            self._tree.forget(self._tree.after(turn.parent))
        self._tree.add(turn)

    def _end(self, rid: str) -> None:
        self._running.pop(rid, None)
        self._idle_since = self._clock()

    def _find(self, rid: str) -> Turn:
        turn = self._tree.get(rid)
        if turn is None:
            problem = "is no turn of the session; replaced, aborted and failed ones are not kept"
            raise _refuse("rid", f"{rid!r} {problem}", "unknown_turn")
        return turn

    def _check_room(self, where: Continuation, most: int) -> None:
        if most < 1:
            raise _refuse("input_ids", "adds nothing to the session, and `max_new_tokens` is 0")
        if self.capacity is None:
            return
        freed = self._tree.after(where.parent) if where.replace else []
        room = self.capacity - self.tokens + sum(len(turn.tokens) for turn in freed)
        if most > room:
            raise _refuse(
                "input_ids",
                f"and `max_new_tokens` may add {most} tokens, the session has room for "
                f"{max(0, room)} of its capacity of {self.capacity}",
                "session_full",
            )


def _refuse(param: str, problem: str, code: str = "invalid_value") -> RequestError:
    return RequestError(f"`{param}` {problem}", param=param, code=code)
