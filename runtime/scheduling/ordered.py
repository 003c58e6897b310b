"""Items kept in the order of keys that are given when they are added."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[float, ...]


class Ordered(Generic[T]):
    """Distinct items, least key first, those of equal keys in the order of their adding.

    A sorted list: adding and removing cost a binary search and the shift of 8 bytes an item.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Key, int, T]] = []
        self._entry_of: dict[T, tuple[Key, int, T]] = {}
        self._number = count()

    def add(self, item: T, *key: float) -> None:
        entry = self._entry_of[item] = (key, next(self._number), item)
        insort(self._entries, entry)

    def remove(self, item: T) -> None:
        """Take an item out that was added."""
        del self._entries[bisect_left(self._entries, self._entry_of.pop(item))]

    def key(self, item: T) -> Key:
        return self._entry_of[item][0]

    def first(self, most: int) -> list[T]:
        """The items with the least keys."""
        return [item for _, _, item in self._entries[:most]]

    def until(self, bound: float, most: int) -> list[T]:
        """The first items, those whose keys begin with at most ``bound``."""
        if not self._entries or self._entries[0][0][0] > bound:
            return []
        end = bisect_right(self._entries, bound, key=lambda entry: entry[0][0])
        return self.first(min(end, most))

    def __contains__(self, item: object) -> bool:
        return item in self._entry_of

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._entries)

    def __len__(self) -> int:
        return len(self._entries)
