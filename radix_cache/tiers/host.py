"""The tier in host memory."""

from __future__ import annotations

from collections import OrderedDict

from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.raw_pages import Payload


class HostStore:
    """Pages by key, of at most ``limit`` bytes together; the least recently used fall out.

    Attributes:
        used: bytes held now; never more than ``limit``.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._pages: OrderedDict[Key, Payload] = OrderedDict()

    def get(self, key: Key) -> Payload | None:
        """The page, which counts as used now; not to be written to."""
        if key not in self._pages:
            return None
        self._pages.move_to_end(key)
        return self._pages[key]

    def put(self, key: Key, payload: Payload) -> list[tuple[Key, Payload]]:
        """Hold a page; returns those that had to go, the page itself if it alone is too large."""
        if key in self._pages:
            self._pages.move_to_end(key)
            return []
        self._pages[key] = payload
        self.used += payload.nbytes
        fallen = []
        while self.used > self.limit:
            oldest = self._pages.popitem(last=False)
            self.used -= oldest[1].nbytes
            fallen.append(oldest)
        return fallen

    def items(self) -> list[tuple[Key, Payload]]:
        """All pages, the most recently used first."""
        return list(reversed(self._pages.items()))

    def clear(self) -> None:
        self._pages.clear()
        self.used = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._pages
