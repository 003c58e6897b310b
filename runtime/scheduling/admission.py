"""How much KV memory the running sequences will still need, estimated and corrected.

Reserving every request's full ``max_new_tokens`` wastes most of the memory, since most end
earlier; reserving nothing makes them evict each other. As in SGLang, a fraction of the
remaining output is reserved; it decays while steps succeed and is raised by a retraction to what
the running sequences turned out to use.
"""

from __future__ import annotations

from collections.abc import Iterable

from phloem.runtime.scheduling.sequence import Sequence

INITIAL_FRACTION = 0.7
LOWEST_FRACTION = 0.1
DECAY_PER_STEP = (INITIAL_FRACTION - LOWEST_FRACTION) / 600
LONGEST_RESERVE = 4096
RETRACTION_MARGIN = 20
"""Tokens per sequence reserved beyond the share used so far, after a retraction."""


class OutputReserve:
    """The fraction of remaining output for which room is kept."""

    def __init__(self) -> None:
        self.fraction = INITIAL_FRACTION

    def tokens(self, seq: Sequence) -> int:
        """Tokens to keep room for, for the sequence and the siblings that will fork from it."""
        expected = int(min(seq.remaining, LONGEST_RESERVE) * self.fraction) + 1
        return expected * (1 + len(seq.siblings))

    def step_succeeded(self) -> None:
        self.fraction = max(LOWEST_FRACTION, self.fraction - DECAY_PER_STEP)

    def retracted(self, running: Iterable[Sequence]) -> None:
        """Learn from a shortage: expect what the running sequences have used, and a margin."""
        sequences = list(running)
        used = sum(seq.generated + RETRACTION_MARGIN for seq in sequences)
        allowed = sum(seq.generated + max(seq.remaining, 1) for seq in sequences)
        self.fraction = min(1.0, max(self.fraction, used / max(allowed, 1)))
