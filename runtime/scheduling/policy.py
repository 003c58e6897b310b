"""In which order waiting sequences start: what each policy means, as functions over plain data.

The queue adds ageing to all of them (see queue.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from phloem.runtime.config import Policy
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.sequence import Sequence
from phloem.runtime.scheduling.subtrees import by_subtree

Rank = Callable[[SequenceMemory, Sequence], float]
Arrange = Callable[[SequenceMemory, Iterable[Sequence]], list[Sequence]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy.

    Attributes:
        rank: the least goes first, and of equal ones who has waited longest.
        measured: whether ranks change with the tree while sequences wait.
        arrange: another order of sequences that the rank has chosen, if there is one.
        preempts: whether larger ``priority`` takes the place of a smaller one that runs.
    """

    rank: Rank
    measured: bool = False
    arrange: Arrange | None = None
    preempts: bool = False


def equal(_memory: SequenceMemory, _seq: Sequence) -> float:
    return 0.0


def by_priority(_memory: SequenceMemory, seq: Sequence) -> float:
    return -seq.request.priority


def longest_cached(memory: SequenceMemory, seq: Sequence) -> float:
    """SGLang's longest prefix match (Zheng et al., 2023): hot prefixes are used while cached."""
    return -memory.cached_length(seq)


def shortest_prefill(memory: SequenceMemory, seq: Sequence) -> float:
    """Tokens to compute before the first new one: the least mean wait, as of shortest jobs."""
    return len(seq.tokens) - memory.cached_length(seq)


RULES: Mapping[Policy, Rule] = {
    "fcfs": Rule(equal),
    "lpm": Rule(longest_cached, measured=True),
    "dfs-weight": Rule(longest_cached, measured=True, arrange=by_subtree),
    "priority": Rule(by_priority, preempts=True),
    "shortest-prefill-first": Rule(shortest_prefill, measured=True),
}
