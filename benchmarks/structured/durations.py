"""Very many durations in little memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_BINS_TO_DOUBLE = 50
"""So a bin is 1.4 % wide."""


@dataclass
class Durations:
    """Seconds in logarithmic bins; number, sum and maximum are exact."""

    count: int = 0
    total: float = 0.0
    longest: float = 0.0
    bins: Counter[int] = field(default_factory=Counter)

    def add(self, seconds: Iterable[float]) -> None:
        for each in seconds:
            self.count += 1
            self.total += each
            self.longest = max(self.longest, each)
            self.bins[_bin(each)] += 1

    def merge(self, other: Durations) -> None:
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)
        self.bins.update(other.bins)

    @property
    def mean(self) -> float:
        """NaN if there are none, as for `percentile`."""
        return self.total / self.count if self.count else math.nan

    def percentile(self, percent: float) -> float:
        """Within the width of a bin."""
        left = math.ceil(self.count * percent / 100)
        for index in sorted(self.bins):
            left -= self.bins[index]
            if left <= 0:
                return min(2 ** ((index + 0.5) / _BINS_TO_DOUBLE), self.longest)
        return math.nan

    def plain(self) -> dict[str, Any]:
        """For JSON; `read` is its inverse."""
        return {**self.__dict__, "bins": dict(self.bins)}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Durations:
        bins = Counter({int(index): count for index, count in plain["bins"].items()})
        return cls(plain["count"], plain["total"], plain["longest"], bins)


def _bin(seconds: float) -> int:
    return math.floor(_BINS_TO_DOUBLE * math.log2(max(seconds, 1e-9)))
