"""In which order waiting sequences start: what each policy means, as functions over plain data.

The queue adds ageing to all of them (see queue.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from phloem.runtime.config import Policy
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.programs import remaining_work
from phloem.runtime.scheduling.sequence import Sequence
from phloem.runtime.scheduling.subtrees import by_subtree

Rank = Callable[[SequenceMemory, Sequence], tuple[float, ...]]
Arrange = Callable[[SequenceMemory, Iterable[Sequence]], list[Sequence]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy.

    Attributes:
        rank: the least goes first, and of equal ones who has waited longest.
        measured: whether ranks change with the tree while sequences wait.
        arrange: another order of sequences that the rank has chosen, if there is one.
        preempts: whether larger ``priority`` takes the place of a smaller one that runs.
        keeps_warm: whether the cache keeps what programs are expected to come back to.
    """

    rank: Rank
    measured: bool = False
    arrange: Arrange | None = None
    preempts: bool = False
    keeps_warm: bool = False


def equal(_memory: SequenceMemory, _seq: Sequence) -> tuple[float]:
    return (0.0,)


def by_priority(_memory: SequenceMemory, seq: Sequence) -> tuple[float]:
    return (-seq.request.priority,)


def longest_cached(memory: SequenceMemory, seq: Sequence) -> tuple[float]:
    """SGLang's longest prefix match (Zheng et al., 2023): hot prefixes are used while cached."""
    return (-memory.cached_length(seq),)


def shortest_prefill(memory: SequenceMemory, seq: Sequence) -> tuple[float]:
    """Tokens to compute before the first new one: the least mean wait, as of shortest jobs."""
    return (len(seq.tokens) - memory.cached_length(seq),)


def least_remaining(memory: SequenceMemory, seq: Sequence) -> tuple[float, float]:
    """What is left of the sequence's program, to a factor of two; of equals, who began first.

    So a program's calls that come at once start one behind the other: what waits for all of them
    waits for the last.
    """
    assert seq.program is not None
    this_call = len(seq.tokens) - memory.cached_length(seq)
    work = remaining_work(seq.program, seq.request.calls_left, this_call)
    return math.floor(math.log2(work)), seq.program.number


RULES: Mapping[Policy, Rule] = {
    "fcfs": Rule(equal),
    "lpm": Rule(longest_cached, measured=True),
    "dfs-weight": Rule(longest_cached, measured=True, arrange=by_subtree),
    "priority": Rule(by_priority, preempts=True),
    "shortest-prefill-first": Rule(shortest_prefill, measured=True),
    "program": Rule(least_remaining, measured=True, keeps_warm=True),
}
