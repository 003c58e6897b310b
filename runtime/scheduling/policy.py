"""The order in which waiting sequences are admitted: pure functions over plain data.

No request waits without bound: whoever has waited ``max_wait`` seconds goes before everyone that
came later, whatever the policy, so it is overtaken only by requests that aged before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from phloem.runtime.config import Policy
from phloem.runtime.scheduling.sequence import Sequence

LPM_WINDOW = 128
"""Matching costs time per waiting sequence; past this many, later arrivals keep their order."""


def by_arrival(waiting: Iterable[Sequence]) -> list[Sequence]:
    """First come, first served, larger ``priority`` first."""
    return sorted(waiting, key=lambda seq: (-seq.request.priority, seq.arrival))


def by_cached_prefix(
    waiting: Iterable[Sequence], cached_length: Callable[[Sequence], int]
) -> list[Sequence]:
    """Longest cached prefix first (SGLang's lpm), so that hot prefixes are used while cached."""
    queue = by_arrival(waiting)
    head, tail = queue[:LPM_WINDOW], queue[LPM_WINDOW:]
    head.sort(key=lambda seq: (-seq.request.priority, -cached_length(seq), seq.arrival))
    return head + tail


def order(
    policy: Policy,
    waiting: Iterable[Sequence],
    cached_length: Callable[[Sequence], int],
    now: float,
    max_wait: float,
) -> list[Sequence]:
    """Waiting sequences in the order of admission at time ``now`` (seconds)."""
    queue = list(waiting)
    aged = sorted((s for s in queue if now - s.arrival >= max_wait), key=lambda seq: seq.arrival)
    young = [seq for seq in queue if now - seq.arrival < max_wait]
    if policy == "lpm":
        return aged + by_cached_prefix(young, cached_length)
    return aged + by_arrival(young)
