"""Reading page files ahead, in threads, while the request that wants them waits for its turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic

from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.raw_pages import Payload

READ_AHEAD_BYTES = 64 << 20
THREADS = 2
"""Reading is mostly checksums, which do not hold the interpreter's lock."""
STALE_SECONDS = 30.0
"""Pages that nobody took by then belong to a request that went away, or got them elsewhere."""


class Prefetch:
    """Pages on their way from a folder, of at most ``limit`` bytes together.

    Where there is no room, a later request's pages are not read ahead, rather than those of
    one that will have its turn before. One thread asks and takes.
    """

    def __init__(self, folder: PageFolder, limit: int = READ_AHEAD_BYTES) -> None:
        self._folder = folder
        self._limit = limit
        self._pages: dict[Key, Future[Payload | None]] = {}
        self._asked: deque[tuple[float, Key]] = deque()  # perhaps taken meanwhile
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="phloem-prefetch")

    def ask(self, keys: Iterable[Key], size: int) -> None:
        """Begin to read pages of ``size`` bytes, as far as there is room."""
        self._drop_stale()
        for key in keys:
            if (len(self._pages) + 1) * size > self._limit:
                return
            if key not in self._pages:
                self._pages[key] = self._threads.submit(self._folder.read, key, size)
                self._asked.append((monotonic(), key))

    def take(self, key: Key, size: int) -> Payload | None:
        """The page, read now if it was not asked for; None if there is none, whole."""
        page = self._pages.pop(key, None)
        if page is None or page.cancel():  # no thread has come to it yet
            return self._folder.read(key, size)
        return page.result()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._pages.clear()

    def _drop_stale(self) -> None:
        while self._asked and self._asked[0][0] < monotonic() - STALE_SECONDS:
            _, key = self._asked.popleft()
            if (page := self._pages.pop(key, None)) is not None:
                page.cancel()

    def __len__(self) -> int:
        return len(self._pages)
