"""Whether a waiting sequence may start beside those that run: tokens, places and pages."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from dataclasses import dataclass

from phloem.runtime.scheduling.admission import OutputReserve
from phloem.runtime.scheduling.memory import SequenceMemory, held_pages
from phloem.runtime.scheduling.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Room:
    """The engine's room, of which ``beside`` takes its part.

    Attributes:
        step_tokens: tokens computed in a step.
        max_running: places of running sequences; siblings that will fork take theirs at once.
    """

    memory: SequenceMemory
    reserve: OutputReserve
    step_tokens: int
    max_running: int

    def can_hold(self, seq: Sequence) -> bool:
        """Whether the whole pool has room for the sequence's known tokens."""
        return self.memory.pages_for(len(seq.tokens)) <= self.memory.pool.total

    def has_place(self, seq: Sequence, beside: Many[Sequence]) -> bool:
        """A request of more continuations than there are places runs alone."""
        return not beside or places(beside) + places((seq,)) <= self.max_running

    def has_pages(self, seq: Sequence, beside: Many[Sequence]) -> bool:
        """Whether there are pages for the sequence and everybody's expected output."""
        return not beside or self.wanted((*beside, seq)) <= self.memory.available

    def wanted(self, sequences: Iterable[Sequence]) -> int:
        """Pages that the sequences are expected to take beyond those that they have."""
        return sum(map(self._wanted, sequences))

    def _wanted(self, seq: Sequence) -> int:
        tokens = len(seq.tokens) + self.reserve.tokens(seq)
        # Each sibling begins with a copy of the half-filled page.
        return max(self.memory.pages_for(tokens) + len(seq.siblings) - len(seq.pages), 0)

    def suffices(self, seq: Sequence, beside: Many[Sequence], leaving: Iterable[Sequence]) -> bool:
        """Whether a waiting sequence could start if others left and only ``beside`` stayed.

        Counts every page of who leaves as free, though some may be shared with who stays.
        """
        if not self.has_place(seq, beside) or tokens(beside) >= self.step_tokens:
            return False
        node = self.memory.cached(seq).node
        shared = held_pages(node, users=1) if node is not None else 0
        free = self.memory.available + sum(len(each.pages) for each in leaving)
        return not beside or self.wanted((*beside, seq)) - shared <= free


def places(sequences: Iterable[Sequence]) -> int:
    return sum(1 + len(seq.siblings) for seq in sequences)


def tokens(sequences: Iterable[Sequence]) -> int:
    """What the sequences would compute in a step without limit."""
    return sum(seq.uncomputed for seq in sequences)
