"""What happens in a radix tree, as events."""

from __future__ import annotations

from itertools import islice

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.results import Insert
from phloem.radix_cache.runs import Tokens
from phloem.radix_cache.tiers.keys import Key, chain, root_key
from phloem.runtime.kv_events.events import (
    MEDIUM,
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
)


class EventFeed:
    """A tree's listener that collects events until they are taken.

    A block's hash is the head of the page's chained key, in which the namespace is the first link:
    equal tokens of two tenants have different hashes.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._keys: dict[int, Key] = {}
        self._events: list[Event] = []

    def inserted(self, namespace: str, tokens: Tokens, insert: Insert) -> None:
        """See Listener."""
        known = insert.known // self._page_size
        above, fresh = insert.pages[:known].tolist(), insert.pages[known:].tolist()
        parent = self._keys[above[-1]] if above else None
        start = root_key(b"", namespace) if parent is None else parent
        added = tokens[insert.known :]
        keys = [*islice(chain(start, added, self._page_size), len(fresh))]
        self._keys.update(zip(fresh, keys, strict=True))
        self._events.append(
            BlockStored(
                block_hashes=[block_hash(key) for key in keys],
                parent_block_hash=None if parent is None else block_hash(parent),
                token_ids=added.tolist(),
                block_size=self._page_size,
                medium=MEDIUM,
            )
        )

    def evicted(self, run: Pages) -> None:
        """See Listener."""
        hashes = [block_hash(self._keys.pop(page)) for page in run.tolist()]
        self._events.append(BlockRemoved(hashes, medium=MEDIUM))

    def cleared(self) -> None:
        """See Listener."""
        self._keys.clear()
        self._events.append(AllBlocksCleared())

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events


def block_hash(key: Key) -> int:
    return int.from_bytes(key[:8], "big")
