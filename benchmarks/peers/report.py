"""Medians over rounds and ratios to the first contestant, as Markdown, JSON and a picture."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from peers.machine import Machine, Noise
from peers.workloads import METRICS

Round = dict[str, dict[str, float]]
"""Values by metric and contestant."""


@dataclass
class Report:
    """``contestants`` are descriptions by name; the first is what the others are compared with.

    ``divisor`` is ``Sizes.divisor``.
    """

    machine: Machine
    contestants: dict[str, str]
    divisor: int = 1
    rounds: list[Round] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)

    def metrics(self) -> list[str]:
        return [metric for metric in METRICS if any(metric in round_ for round_ in self.rounds)]

    def median(self, metric: str, name: str) -> float:
        """Over the rounds that have a value; NaN if none has."""
        return median(round_.get(metric, {}).get(name) for round_ in self.rounds)

    def lead(self, metric: str, name: str) -> float:
        """How many times as fast as ``name`` the first contestant is: the rounds' median."""
        first = next(iter(self.contestants))
        return median(lead(metric, round_.get(metric, {}), first, name) for round_ in self.rounds)


def lead(metric: str, values: dict[str, float], first: str, name: str) -> float | None:
    if first not in values or name not in values:
        return None
    ratio = values[first] / values[name]
    return ratio if METRICS[metric].higher_is_better else 1 / ratio


def median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def markdown(report: Report) -> str:
    first, *others = report.contestants
    medians = table(report, list(report.contestants), report.median)
    parts = [str(report.machine), legend(report), noise(report)]
    if report.divisor > 1:
        parts.append(f"A quick look: every length is 1/{report.divisor} of what is said.")
    parts += [f"Medians, rounds: {len(report.rounds)}", medians]
    if others:
        parts.append(f"Speed of {first} over the other's; above 1, {first} is faster:")
        parts.append(table(report, others, report.lead))
    return "\n\n".join(parts) + "\n"


def legend(report: Report) -> str:
    return "\n".join(f"* {name}: {text}" for name, text in report.contestants.items())


def noise(report: Report) -> str:
    return "\n".join(f"* round {number}: {each}" for number, each in enumerate(report.noise, 1))


def table(report: Report, names: Sequence[str], value: Callable[[str, str], float]) -> str:
    rows = [["", "unit", *names]]
    for metric in report.metrics():
        about = METRICS[metric]
        rows.append([about.title, about.unit, *(show(value(metric, name)) for name in names)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = ["-" * width for width in widths]
    return "\n".join(line(row, widths) for row in [rows[0], rule, *rows[1:]])


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(map(str.ljust, cells, widths)) + " |"


def show(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def write_json(report: Report, path: Path) -> None:
    path.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")


def plot(report: Report, path: Path) -> None:
    """Bars of the first contestant's lead, one group per metric."""
    from matplotlib import pyplot

    first, *others = report.contestants
    metrics = report.metrics()
    height = 0.8 / max(len(others), 1)
    figure, axes = pyplot.subplots(figsize=(9, 1 + len(metrics) * 0.8), layout="constrained")
    for index, name in enumerate(others):
        places = [place + index * height for place in range(len(metrics))]
        leads = [report.lead(each, name) for each in metrics]
        axes.barh(places, [lead - 1 for lead in leads], height, left=1, label=name)
    middle = height * (len(others) - 1) / 2
    axes.set_yticks(
        [place + middle for place in range(len(metrics))],
        [METRICS[metric].title for metric in metrics],
    )
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel(f"speed of {first} over the other's")
    figure.legend(loc="outside upper right")
    figure.savefig(path, dpi=150)
