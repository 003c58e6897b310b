"""The tier on disk: a folder of page files, written in the background."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from time import monotonic

from phloem.radix_cache.tiers import page_file
from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.prefetch import Prefetch
from phloem.radix_cache.tiers.raw_pages import Payload
from phloem.radix_cache.tiers.writer import Writer

logger = logging.getLogger(__name__)

QUEUE_BYTES = 256 << 20
CLOSE_SECONDS = 8.0
"""For what is queued when the engine ends; less than its client waits before it kills."""


class DiskStore:
    """Pages by key in files of at most ``limit`` bytes together."""

    def __init__(self, path: Path, limit: int, queue_bytes: int = QUEUE_BYTES) -> None:
        """Open the folder.

        Raises:
            OSError: it cannot be made, read or written to.
        """
        self.folder = PageFolder(path, limit)
        self.writer = Writer(self.folder, queue_bytes)
        self.prefetch = Prefetch(self.folder)
        held = self.folder.used >> 20
        logger.info("%d pages (%d MiB) in the disk cache %s", len(self.folder), held, path)

    def get(self, key: Key, size: int) -> Payload | None:
        """The page of ``size`` bytes, from the queue or a file; None if it is not there, whole."""
        waiting = self.writer.get(key)
        return waiting if waiting is not None else self.prefetch.take(key, size)

    def read_ahead(self, keys: Iterable[Key], size: int) -> None:
        """Begin to read pages of ``size`` bytes that will be asked for; no file yet, no reading."""
        self.prefetch.ask((key for key in keys if self.writer.get(key) is None), size)

    def put(self, key: Key, payload: Payload) -> None:
        """Write the page soon; too many at once are dropped."""
        self.writer.offer(key, payload)

    def touch(self, key: Key) -> None:
        """Count a page that is there as used now."""
        self.folder.touch(key)

    def capacity(self, size: int) -> int:
        """How many pages of ``size`` bytes the folder holds at most."""
        return self.folder.limit // page_file.file_bytes(size)

    def put_patiently(self, key: Key, payload: Payload, deadline: float) -> bool:
        """Write the page, waiting for room until ``deadline``; False if there was none."""
        if not self.writer.wait_for_room(payload.nbytes, deadline - monotonic()):
            return False
        self.put(key, payload)
        return True

    def close(self, deadline: float) -> None:
        """Write what is queued until ``deadline``, a time of the monotonic clock."""
        self.prefetch.close()
        if not self.writer.close(max(deadline - monotonic(), 0.0)):
            logger.warning("%d pages did not reach the disk cache in time", self.writer.dropped)

    def __contains__(self, key: Key) -> bool:
        return self.writer.get(key) is not None or key in self.folder
