"""Writing off the critical path: a thread, and a queue that rather drops than waits."""

from __future__ import annotations

import logging
import threading
from collections import deque
from time import monotonic

from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.raw_pages import Payload

logger = logging.getLogger(__name__)

WARNING_SECONDS = 60.0
"""A full disk is reported once in this time, not once for each page."""


class Writer:
    """Writes pages into a folder in the order in which they were offered.

    Pages wait in memory of at most ``limit`` bytes. A page that cannot be written is lost to the
    disk alone, so nobody waits and nothing fails.

    Attributes:
        dropped: pages refused because too many waited, or lost to an error.
    """

    def __init__(self, folder: PageFolder, limit: int) -> None:
        self.dropped = 0
        self._folder = folder
        self._limit = limit
        self._queue: deque[tuple[Key, Payload]] = deque()
        self._waiting: dict[Key, Payload] = {}  # queued, or being written
        self._bytes = 0
        self._closed = False
        self._warned = -WARNING_SECONDS
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="phloem-disk", daemon=True)
        self._thread.start()

    def get(self, key: Key) -> Payload | None:
        """A page that has not been written yet."""
        return self._waiting.get(key)

    def offer(self, key: Key, payload: Payload) -> None:
        """Queue a page, or drop it if the queue is full; does not wait."""
        with self._changed:
            if key in self._waiting:
                return
            if self._closed or self._bytes + payload.nbytes > self._limit:
                self.dropped += 1
                return
            self._queue.append((key, payload))
            self._waiting[key] = payload
            self._bytes += payload.nbytes
            self._changed.notify_all()

    def has_room(self, nbytes: int) -> bool:
        """Whether a page of so many bytes would be queued; only the offering thread can tell."""
        return self._bytes + nbytes <= self._limit

    def drain(self, seconds: float) -> bool:
        """Wait until all that was offered is written; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def wait_for_room(self, nbytes: int, seconds: float) -> bool:
        """Wait until a page of so many bytes can be offered; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self.has_room(nbytes), seconds)

    def close(self, seconds: float) -> bool:
        """Write what is queued, as far as the time allows, and end the thread."""
        drained = self.drain(seconds)
        with self._changed:
            self._closed = True
            self.dropped += len(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        self._thread.join()
        return drained

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                key, payload = self._queue.popleft()
            self._write(key, payload)
            with self._changed:
                del self._waiting[key]
                self._bytes -= payload.nbytes
                self._changed.notify_all()

    def _write(self, key: Key, payload: Payload) -> None:
        try:
            self._folder.write(key, payload)
        except OSError as error:
            self.dropped += 1
            if monotonic() - self._warned >= WARNING_SECONDS:
                self._warned = monotonic()
                logger.warning("the disk cache cannot be written to: %s", error)
