"""Characters that no set of a grammar tells apart, as classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phloem.constrained.regex import code_points
from phloem.constrained.regex.code_points import Ranges


@dataclass(frozen=True, slots=True)
class Partition:
    """Code points by class, numbered from 0; those in no set have none.

    Attributes:
        pieces: (first, last, class) of runs of code points, ascending.
        classes: the classes that make up each set, by the set's index.
        count: how many classes there are.
    """

    pieces: tuple[tuple[int, int, int], ...]
    classes: tuple[tuple[int, ...], ...]
    count: int


def partition(sets: Sequence[Ranges]) -> Partition:
    """The coarsest partition of which each of ``sets`` is made."""
    inside = {bits: ranges for bits, ranges in code_points.partition(sets).items() if bits}
    pieces = (
        (low, high, number)
        for number, ranges in enumerate(inside.values())
        for low, high in ranges
    )  # fmt: skip
    classes = (
        tuple(number for number, bits in enumerate(inside) if bits >> index & 1)
        for index in range(len(sets))
    )
    return Partition(tuple(sorted(pieces)), tuple(classes), len(inside))
