"""The open sessions of a server, by their ids."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from phloem.runtime.errors import OverloadedError, RequestError
from phloem.runtime.sessions.session import Session
from phloem.runtime.validation import MAX_LABEL_CHARS

MAX_SESSIONS = 1024
MAX_TOKENS = 1 << 24
MAX_TURNS = 1 << 18
"""Of all sessions together: a token takes four bytes, a turn some three hundred."""


class Sessions:
    """Opens, finds and closes sessions; those that have expired are gone at the next call.

    ``max_tokens`` and ``max_turns`` bound what all sessions hold together, before each turn.
    """

    def __init__(
        self,
        max_sessions: int = MAX_SESSIONS,
        max_tokens: int = MAX_TOKENS,
        max_turns: int = MAX_TURNS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_sessions = max_sessions
        self._max_tokens = max_tokens
        self._max_turns = max_turns
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        """How many are open."""
        self._drop_expired()
        return len(self._sessions)

    def open(
        self,
        session_id: str | None = None,
        capacity: int | None = None,
        timeout: float | None = None,
    ) -> Session:
        """A new session; without an id it gets one that nobody can guess.

        Raises:
            RequestError: the id is in use or no label, or a limit of ``Session``.
            OverloadedError: as many are open as may be.
        """
        self._drop_expired()
        chosen = uuid.uuid4().hex if session_id is None else session_id
        self._check_id(chosen)
        session = Session(chosen, capacity, timeout, self._clock)
        if len(self._sessions) >= self._max_sessions:
            raise OverloadedError(f"{self._max_sessions} sessions are open, which is the limit")
        self._sessions[chosen] = session
        return session

    def find(self, session_id: str) -> Session:
        """An open session, for a turn.

        Raises:
            RequestError: there is none of that id.
            OverloadedError: all sessions together hold as many tokens or turns as they may.
        """
        self._drop_expired()
        if session_id not in self._sessions:
            raise RequestError(
                f"`session_id` {session_id!r} is no open session; it was never opened, was closed, "
                "or was idle for longer than its timeout",
                param="session_id",
                code="unknown_session",
            )
        self._check_room()
        return self._sessions[session_id]

    def _check_room(self) -> None:
        if sum(each.tokens for each in self._sessions.values()) >= self._max_tokens:
            raise OverloadedError(f"all sessions together hold {self._max_tokens} tokens already")
        if sum(each.turns for each in self._sessions.values()) >= self._max_turns:
            raise OverloadedError(f"all sessions together have {self._max_turns} turns already")

    def close(self, session_id: str) -> bool:
        """Forget a session; False if there is none of that id.

        Turns that run go on to their ends. The cache keeps the tokens as long as it was asked to.
        """
        self._drop_expired()
        return self._sessions.pop(session_id, None) is not None

    def _check_id(self, session_id: str) -> None:
        if not 0 < len(session_id) <= MAX_LABEL_CHARS:
            raise RequestError(
                f"`session_id` must have 1 to {MAX_LABEL_CHARS} characters, got {len(session_id)}",
                param="session_id",
                code="invalid_value",
            )
        if session_id in self._sessions:
            raise RequestError(
                f"`session_id` {session_id!r} is open already",
                param="session_id",
                code="duplicate_session",
            )

    def _drop_expired(self) -> None:
        expired = [each.id for each in self._sessions.values() if each.expired]
        for session_id in expired:
            del self._sessions[session_id]
