"""What an engine did with all schemas, in bounded memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from structured.durations import Durations
from structured.examination import Outcome


@dataclass
class Counts:
    """Numbers of schemas, of one file or of all."""

    schemas: int = 0
    with_instances: int = 0
    compiled: int = 0
    right: int = 0
    narrow: int = 0
    """Reject a valid instance."""
    unsound: int = 0
    """Accept an invalid instance, without a warning that something is not enforced."""
    warned: int = 0
    """The same, with such a warning."""
    failing: int = 0
    """Met a run-time error."""
    verdicts: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.schemas += 1
        self.with_instances += outcome.instances > 0
        self.verdicts[outcome.verdict] += 1
        self.compiled += outcome.compiled
        self.right += outcome.right
        self.narrow += bool(outcome.rejected)
        self.unsound += bool(outcome.passed) and not outcome.warnings
        self.warned += bool(outcome.passed) and bool(outcome.warnings)
        self.failing += bool(outcome.failures)


@dataclass
class Tally:
    """Everything that the report says of an engine."""

    description: str
    total: Counts = field(default_factory=Counts)
    files: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    reasons: Counter[str] = field(default_factory=Counter)
    unsound: list[str] = field(default_factory=list)
    compiles: Durations = field(default_factory=Durations)
    fills: Durations = field(default_factory=Durations)
    accepts: Durations = field(default_factory=Durations)
    peak: int = 0

    def add(self, file: str, outcome: Outcome) -> None:
        self.total.add(outcome)
        self.files[file].add(outcome)
        if not outcome.compiled:
            self.reasons[outcome.keyword] += 1
            return
        self.compiles.add([outcome.compile_s])
        self.fills.merge(outcome.fills)
        self.accepts.merge(outcome.accepts)
        if outcome.passed and not outcome.warnings:
            self.unsound.append(f"{file}: {outcome.name}")

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        durations = {
            key: getattr(self, key).plain() for key in ("compiles", "fills", "accepts")
        }  # fmt: skip
        counts = {
            "total": self.total.__dict__,
            "files": {file: counts.__dict__ for file, counts in self.files.items()},
        }
        return {**self.__dict__, **counts, **durations}
