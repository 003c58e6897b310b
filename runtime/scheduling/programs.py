"""What is known of the programs (agents, DSL runs) whose calls the engine serves.

A program is done when its last call is, so its calls are best served by what is left of it: least
remaining work first has the least mean completion time. Where nobody says how many calls follow,
what the program has had is the best guess of what it will want, as work in practice has a heavy
tail; that is the least attained service of Luo et al., 2025 (Autellix). A call without a program is
a program of one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from phloem.runtime.scheduling.sequence import Sequence

FORGET_SECONDS = 600.0
MOST_PROGRAMS = 10_000
"""A program begins anew with its next call if it made none for so long, or so many others did."""

FIRST_GAP = 5.0
GAP_SHARE = 0.1
"""Seconds between two calls of a program, until some were seen; and the weight of the latest."""

PATIENCE = 4.0
LONGEST_PATIENCE = 60.0
"""A program is waited for over so many mean gaps, and never longer than so many seconds."""


@dataclass(slots=True)
class Program:
    """One program's account.

    Attributes:
        number: counts the programs in the order of their first calls.
        called: when the latest call came; ended: when the latest one ended, in seconds.
        live: sequences that wait or run.
        finished: sequences that ended, and the tokens that were computed for them.
    """

    number: int
    called: float
    ended: float = 0.0
    live: int = 0
    finished: int = 0
    computed: int = 0


class Programs:
    """The accounts of programs that made a call lately."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str], Program] = {}  # the latest call's comes last
        self._mean_gap = FIRST_GAP
        self._numbers = count()

    def enter(self, seq: Sequence) -> None:
        """A call has come, with its siblings."""
        program = self._account(seq)
        if program.finished and not program.live:
            self._note_gap(seq.arrival - program.ended)
        for each in (seq, *seq.siblings):
            each.program = program
            program.live += 1

    def _account(self, seq: Sequence) -> Program:
        now = seq.arrival
        if not seq.request.program:
            return Program(next(self._numbers), now)
        self._forget(now)
        key = seq.namespace, seq.request.program
        program = self._accounts.pop(key, None) or Program(next(self._numbers), now)
        program.called = now
        self._accounts[key] = program
        return program

    def _forget(self, now: float) -> None:
        while self._accounts:
            key, program = next(iter(self._accounts.items()))
            if now - program.called < FORGET_SECONDS and len(self._accounts) < MOST_PROGRAMS:
                return
            del self._accounts[key]

    def _note_gap(self, seconds: float) -> None:
        gap = min(max(seconds, 0.0), LONGEST_PATIENCE)
        self._mean_gap += GAP_SHARE * (gap - self._mean_gap)

    def leave(self, seq: Sequence, now: float) -> None:
        """A sequence ends, still with what it computed; nothing if it never came or has left."""
        program, seq.program = seq.program, None
        if program is not None:
            program.live -= 1
            program.finished += 1
            program.computed += own_work(seq)
            program.ended = now

    def keep_warm(self, seq: Sequence) -> float:
        """Seconds for which the program of an ended call is expected back; 0 if it is not."""
        if not seq.request.calls_left:
            return 0.0
        return min(PATIENCE * self._mean_gap, LONGEST_PATIENCE)

    def __len__(self) -> int:
        return len(self._accounts)


def own_work(seq: Sequence) -> int:
    """Tokens computed for a running sequence; siblings share the prompt of the first."""
    found = seq.prompt_length if seq.index else seq.cached_tokens or 0
    return max(seq.computed - found, 0)


def remaining_work(program: Program, calls_left: int | None, this_call: int) -> float:
    """Tokens that a program is expected to want computed, from a call of so many tokens on."""
    if calls_left is None:
        return this_call + program.computed
    a_call = program.computed / program.finished if program.finished else this_call
    return this_call + calls_left * a_call
