"""Schemas with instances, in folders of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """A line of a file: ``{"name", "schema", "valid": [...], "invalid": [...]}``.

    The text stays in the file, since collections may be larger than memory.
    """

    path: Path
    start: int
    length: int

    def text(self) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.length).rstrip(b"\r\n")


def find(folder: Path, limit: int | None = None) -> Iterator[Case]:
    """The cases in the ``.jsonl`` files below ``folder``, of each file at most ``limit``.

    Those of a file that has more are spread over it evenly.
    """
    for path in sorted(folder.rglob("*.jsonl")):
        lines = list(_lines(path))
        if limit is None or len(lines) <= limit:
            yield from lines
        else:
            yield from (lines[index * len(lines) // limit] for index in range(limit))


def _lines(path: Path) -> Iterator[Case]:
    start = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield Case(path, start, len(line))
            start += len(line)
