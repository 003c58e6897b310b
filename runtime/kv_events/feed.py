"""What happens in a radix tree, as events."""

from __future__ import annotations

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.results import Insert
from phloem.radix_cache.runs import Tokens
from phloem.radix_cache.tiers.keys import Key, PageKeys
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
        self._keys = PageKeys(b"", page_size)
        self._events: list[Event] = []

    def inserted(self, namespace: str, tokens: Tokens, insert: Insert) -> None:
        """See Listener."""
        added = self._keys.add(namespace, tokens, insert)
        known = insert.known // self._page_size
        parent = block_hash(self._keys[int(insert.pages[known - 1])]) if known else None
        self._events.append(
            BlockStored(
                block_hashes=[block_hash(key) for key in added.values()],
                parent_block_hash=parent,
                token_ids=tokens[insert.known :].tolist(),
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
