"""A tree's events on a socket, a batch for each step."""

from __future__ import annotations

from phloem.radix_cache import RadixCache
from phloem.runtime.kv_events.feed import EventFeed
from phloem.runtime.kv_events.publisher import EventPublisher


class KVEvents:
    """Listens to a tree and publishes what it heard whenever it is told to."""

    def __init__(self, tree: RadixCache, page_size: int, publisher: EventPublisher) -> None:
        self._feed = EventFeed(page_size)
        self._publisher = publisher
        tree.listeners.append(self._feed)

    def publish(self) -> None:
        """Send what happened since the last time, if anything did."""
        events = self._feed.take()
        if events:
            self._publisher.publish(events)

    def close(self) -> None:
        """Send the rest and unbind."""
        self.publish()
        self._publisher.close()
