"""Where in a document arrays must hold no item, and objects no name, twice."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from phloem.constrained.guards.stock import Stock

_MOST_PLACES = 4_096


@dataclass(frozen=True, slots=True)
class Part:
    """What one schema says. Others are meant by their index in the outline, None is no schema.

    Attributes:
        stock: the items of an array that may hold none twice; None if it may.
        counted: whether an object is asked for so many members that a name must not occur twice.
        least, most: how many members an object must and may have.
        together: the schemas that may apply to the same value.
        named, patterns, others: those of an object's members: by name, by a pattern of the name,
            and of the members that neither lists. A pattern of None may match any name.
        first, rest: those of an array's items.
    """

    stock: Stock | None = None
    counted: bool = False
    least: int = 0
    most: float = math.inf
    together: tuple[int | None, ...] = ()
    named: Mapping[str, int | None] = field(default_factory=dict)
    patterns: tuple[tuple[str | None, int | None], ...] = ()
    others: int | None = None
    first: tuple[int | None, ...] = ()
    rest: int | None = None

    @property
    def is_checked(self) -> bool:
        """Whether there is anything to check at its own place."""
        bounded = self.least > 0 or self.most < math.inf
        return self.stock is not None or self.counted or bounded

    def inside(self) -> Iterator[int | None]:
        """The schemas of members and items."""
        yield from self.named.values()
        yield from (index for _, index in self.patterns)
        yield from self.first
        yield from (self.others, self.rest)

    def of_member(self, name: str) -> Iterator[int | None]:
        """The schemas of the member ``name``; too many where dialects read a pattern apart."""
        if name in self.named:
            yield self.named[name]
        matches = [_matches(pattern, name) for pattern, _ in self.patterns]
        for (_, index), match in zip(self.patterns, matches, strict=True):
            if match is not False:
                yield index
        if name not in self.named and True not in matches:
            yield self.others

    def of_item(self, index: int) -> int | None:
        """The schema of the item at ``index``."""
        return self.first[index] if index < len(self.first) else self.rest


class Place:
    """A value's place in a document: the schemas that may apply to it.

    ``stock`` is that of an array whose items must differ, else None; ``counted`` says whether the
    names of an object must, which is to have at least ``least`` and at most ``most`` members.
    """

    __slots__ = ("_outline", "_parts", "counted", "least", "most", "stock")

    def __init__(self, outline: Outline, parts: frozenset[int]) -> None:
        self._outline = outline
        self._parts = [outline.parts[index] for index in sorted(parts)]
        self.counted = any(part.counted for part in self._parts)
        self.least = max(part.least for part in self._parts)
        self.most = min(part.most for part in self._parts)
        self.stock = _one_stock(part.stock for part in self._parts if part.stock is not None)

    def member(self, name: str) -> Place | None:
        """The place of the member ``name``, None if nothing is to be checked in it."""
        return self._outline.place(index for part in self._parts for index in part.of_member(name))

    def item(self, index: int) -> Place | None:
        """The place of the item at ``index``, None if nothing is to be checked in it."""
        return self._outline.place(part.of_item(index) for part in self._parts)


class Outline:
    """The schemas of a document, the root first, as far as they lead to what is to be checked.

    Schemas of which one applies (``anyOf``) count as if all did: an array that one of them forbids
    to hold an item twice never does.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._relevant = _leading_to_checks(parts)
        self._place = lru_cache(_MOST_PLACES)(lambda parts: Place(self, parts))
        self.root = self.place([0])

    def place(self, indices: Iterable[int | None]) -> Place | None:
        """Where all of ``indices`` apply; None if nothing is to be checked there or below."""
        todo, found = list(indices), set[int]()
        while todo:
            index = todo.pop()
            if index is not None and index in self._relevant and index not in found:
                found.add(index)
                todo.extend(self.parts[index].together)
        return self._place(frozenset(found)) if found else None


def _one_stock(stocks: Iterable[Stock]) -> Stock | None:
    """The stock of an array for which all of ``stocks`` are asked for."""
    found = list(stocks)
    return found[0] if len(found) == 1 else Stock() if found else None


def _leading_to_checks(parts: Sequence[Part]) -> set[int]:
    used_by: defaultdict[int, list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        for other in (*part.together, *part.inside()):
            if other is not None:
                used_by[other].append(index)
    todo = [index for index, part in enumerate(parts) if part.is_checked]
    found: set[int] = set()
    while todo:
        index = todo.pop()
        if index not in found:
            found.add(index)
            todo.extend(used_by[index])
    return found


def _matches(pattern: str | None, name: str) -> bool | None:
    """Whether ``name`` holds a match; None where that depends on the dialect."""
    if pattern is None:
        return None
    try:
        answers = {bool(re.search(pattern, name, flags)) for flags in (0, re.ASCII)}
    except (re.error, ValueError, RecursionError):
        return None
    return answers.pop() if len(answers) == 1 else None
