"""Tallies as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from structured.durations import Durations
from structured.tally import Counts, Tally

MOST_REASONS = 40
MOST_NAMES = 100


def markdown(tallies: Mapping[str, Tally]) -> str:
    parts = ["\n".join(f"* {name}: {tally.description}" for name, tally in tallies.items())]
    parts.append(summary(tallies))
    parts.append("Fully right / rejecting a valid instance / unsound / not compiled:")
    parts.append(by_file(tallies))
    for name, tally in tallies.items():
        if tally.reasons:
            parts += [f"Why {name} does not compile:", reasons(tally)]
        if tally.unsound:
            parts += [f"Unsound with {name}:", names(tally.unsound)]
    return "\n\n".join(parts) + "\n"


def summary(tallies: Mapping[str, Tally]) -> str:
    rows = [["", *tallies]]
    for title, value in _ROWS.items():
        rows.append([title, *(value(tally) for tally in tallies.values())])
    return table(rows)


def _share(number: Callable[[Counts], int]) -> Callable[[Tally], str]:
    def show(tally: Tally) -> str:
        of = tally.total.schemas
        count = number(tally.total)
        return f"{count:,} ({count / of:.1%})" if of else "-"

    return show


def _times(durations: str, scale: float, percents: Sequence[float]) -> Callable[[Tally], str]:
    def show(tally: Tally) -> str:
        known: Durations = getattr(tally, durations)
        values = [known.mean, *map(known.percentile, percents), known.longest]
        return " / ".join(number(value * scale) for value in values)

    return show


_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "schemas": lambda tally: f"{tally.total.schemas:,}",
    "of them with instances": lambda tally: f"{tally.total.with_instances:,}",
    "compiled": _share(lambda counts: counts.compiled),
    "refused": _share(lambda counts: counts.verdicts["refused"]),
    "timed out": _share(lambda counts: counts.verdicts["timed out"]),
    "crashed": _share(lambda counts: counts.verdicts["crashed"]),
    "fully right": _share(lambda counts: counts.right),
    "reject a valid instance": _share(lambda counts: counts.narrow),
    "unsound": _share(lambda counts: counts.unsound),
    "pass what they warn of": _share(lambda counts: counts.warned),
    "meet a run-time error": _share(lambda counts: counts.failing),
    "compile + first mask ms, mean / p50 / p90 / p99 / max": _times("compiles", 1e3, (50, 90, 99)),
    "compile all, s": lambda tally: number(tally.compiles.total),
    "masks": lambda tally: f"{tally.fills.count:,}",
    "mask us, mean / p50 / p90 / p99 / p99.9 / max": _times("fills", 1e6, (50, 90, 99, 99.9)),
    "accept us, mean / p50 / p99 / max": _times("accepts", 1e6, (50, 99)),
    "peak memory MB": lambda tally: f"{tally.peak / 1e6:,.0f}",
}


def by_file(tallies: Mapping[str, Tally]) -> str:
    files = sorted({file for tally in tallies.values() for file in tally.files})
    rows = [["file", "schemas", *tallies]]
    for file in files:
        counts = [tally.files[file] for tally in tallies.values()]
        rows.append([file, f"{counts[0].schemas:,}", *map(brief, counts)])
    return table(rows)


def brief(counts: Counts) -> str:
    missing = counts.schemas - counts.compiled
    return f"{counts.right} / {counts.narrow} / {counts.unsound} / {missing}"


def reasons(tally: Tally) -> str:
    common = tally.reasons.most_common(MOST_REASONS)
    rest = tally.reasons.total() - sum(count for _, count in common)
    rows = [["keyword or reason", "schemas"], *([key, f"{count:,}"] for key, count in common)]
    return table(rows + ([["others", f"{rest:,}"]] if rest else []))


def names(unsound: Sequence[str]) -> str:
    lines = [f"* {name}" for name in unsound[:MOST_NAMES]]
    more = len(unsound) - len(lines)
    return "\n".join(lines + ([f"* and {more} more"] if more else []))


def table(rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(row, widths) for row in [cells[0], rule, *cells[1:]])


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "| " + " | ".join(map(str.ljust, cells, widths)) + " |"


def number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
