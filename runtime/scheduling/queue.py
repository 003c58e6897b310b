"""The waiting sequences and the order in which they start.

Ageing bounds every wait. A sequence is *due* when it has waited ``max_wait`` seconds in all,
retractions included; from then on it goes before all that are not due, in the order of due times,
and nothing that comes later can go before it. So a sequence starts after at most ``max_wait``
seconds plus the time to serve, one after the other at worst,

* what runs when it falls due,
* what was due before it (so all of it had come by then), and
* one sequence more: the one that was chosen to be next and is waiting for room.

All of these are finite, and none of them grows after that moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.ordered import Ordered
from phloem.runtime.scheduling.policy import Rule
from phloem.runtime.scheduling.sequence import Sequence

WINDOW = 128
"""How many sequences are looked at in a step, of the due ones and of the others: what a step
costs does not grow with the queue. Beyond it the order is by the ranks at the last look."""


class WaitingQueue:
    """Sequences by a policy's rank and by when they are due.

    Adding and removing cost O(log n) comparisons. Where ranks are measured, a step matches at
    most WINDOW sequences in the tree, and none that was matched since the tree last changed.
    """

    def __init__(self, rule: Rule, memory: SequenceMemory, max_wait: float) -> None:
        self._rule = rule
        self._memory = memory
        self._max_wait = max_wait
        self._by_due: Ordered[Sequence] = Ordered()
        self._by_rank: Ordered[Sequence] = Ordered()
        self._held: Sequence | None = None

    def add(self, seq: Sequence, now: float) -> None:
        """Queue a sequence that waits since ``now``."""
        seq.waits_since = now
        due = now + max(self._max_wait - seq.waited, 0.0)
        self._by_due.add(seq, due)
        self._by_rank.add(seq, *self._rule.rank(self._memory, seq), due)

    def remove(self, seq: Sequence) -> None:
        """Take a sequence out that will not start."""
        self._by_due.remove(seq)
        self._by_rank.remove(seq)
        if seq is self._held:
            self._held = None

    def start(self, seq: Sequence, now: float) -> None:
        """Take a sequence out that starts."""
        self.remove(seq)
        seq.waited += max(now - seq.waits_since, 0.0)

    def hold(self, seq: Sequence) -> None:
        """Let a sequence that was chosen, and found no room, be the next one until it starts.

        Otherwise a large one could be overtaken whenever ranks change, and they would have to be
        measured in every step in which nothing can start. Ranks that do not change need no hold.
        """
        if self._rule.measured:
            self._held = seq

    def is_due(self, seq: Sequence, now: float) -> bool:
        return self._by_due.key(seq)[0] <= now

    def candidates(self, now: float) -> Iterator[Sequence]:
        """The sequences to try at time ``now``, best first; those yielded may be taken out."""
        held = self._held
        if held is not None:
            yield held
        due = self._by_due.until(now, WINDOW)
        yield from (seq for seq in due if seq is not held)
        if len(due) < WINDOW:
            yield from self._by_policy(now, WINDOW + len(due), held)

    def _by_policy(self, now: float, most: int, held: Sequence | None) -> list[Sequence]:
        """Who is not due, in the order of ranks that hold now."""
        window = [
            seq
            for seq in self._by_rank.first(most)
            if seq is not held and not self.is_due(seq, now)
        ]
        if not self._rule.measured:
            return window
        for seq in window:
            self._measure(seq)
        if self._rule.arrange is not None:
            return self._rule.arrange(self._memory, window)
        return sorted(window, key=self._by_rank.key)

    def _measure(self, seq: Sequence) -> None:
        rank = self._rule.rank(self._memory, seq)
        *last, due = self._by_rank.key(seq)
        if rank != tuple(last):
            self._by_rank.remove(seq)
            self._by_rank.add(seq, *rank, due)

    def __contains__(self, seq: object) -> bool:
        return seq in self._by_due

    def __iter__(self) -> Iterator[Sequence]:
        """Who is due first comes first."""
        return iter(self._by_due)

    def __len__(self) -> int:
        return len(self._by_due)
