"""What a radix cache should do, said page by page in dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

Prefix = tuple[str, tuple[int, ...]]
"""A namespace, and tokens up to the end of some page."""


@dataclass
class Entry:
    page: int
    used: float
    locks: int = 0


class Oracle:
    """Every cached prefix has an entry of its own."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.entries: dict[Prefix, Entry] = {}

    def prefixes(self, namespace: str, tokens: tuple[int, ...]) -> Iterator[Prefix]:
        for end in range(self.page_size, len(tokens) + 1, self.page_size):
            yield namespace, tokens[:end]

    def parent(self, prefix: Prefix) -> Prefix:
        return prefix[0], prefix[1][: -self.page_size]

    def match(self, namespace: str, tokens: tuple[int, ...], now: float) -> list[int]:
        pages = []
        for prefix in self.prefixes(namespace, tokens):
            if prefix not in self.entries:
                break
            self.entries[prefix].used = now
            pages.append(self.entries[prefix].page)
        return pages

    def longest_head(self, namespace: str, tokens: tuple[int, ...]) -> int:
        """Tokens shared with any cached prefix, whole pages and part of one."""
        return max(
            (shared(tokens, run) for name, run in self.entries if name == namespace), default=0
        )

    def insert(
        self, namespace: str, tokens: tuple[int, ...], pages: list[int], now: float
    ) -> list[int]:
        for prefix, page in zip(self.prefixes(namespace, tokens), pages, strict=True):
            self.entries.setdefault(prefix, Entry(page, now)).used = now
        return self.match(namespace, tokens, now)

    def lock(self, namespace: str, tokens: tuple[int, ...], change: int) -> None:
        for prefix in self.prefixes(namespace, tokens):
            self.entries[prefix].locks += change

    def evict(self, n: int, held: Collection[int]) -> int:
        """Least recently used page first, of those with nothing behind them and no lock."""
        freed = 0
        while freed < n:
            inner = {self.parent(prefix) for prefix in self.entries}
            outer = [p for p, e in self.entries.items() if p not in inner and not e.locks]
            if not outer:
                break
            victim = self.entries.pop(min(outer, key=lambda p: self.entries[p].used))
            freed += victim.page not in held
        return freed

    def count(self, locked: bool) -> int:
        return sum(bool(entry.locks) == locked for entry in self.entries.values())


def shared(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    pairs = list(zip(a, b, strict=False))
    return next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))
