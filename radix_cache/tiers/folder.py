"""Page files in one folder, of bounded size together, which several processes may share.

A file's time of modification is the time of its last use, so the order of use survives a restart.
There are no locks between processes: files never change, they appear by renaming, and whoever
misses a file that another has removed computes the page.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from phloem.radix_cache.tiers import page_file
from phloem.radix_cache.tiers.keys import KEY_BYTES, Key
from phloem.radix_cache.tiers.raw_pages import Payload

logger = logging.getLogger(__name__)

SUFFIX = ".kv"
SWEPT_SHARE = 0.9
"""How much of the limit is left in use when the oldest files are removed: sweeping looks at every
file, so it should be rare."""
DRAFT_SECONDS = 60.0
"""A draft older than this was left by a process that died."""


class PageFolder:
    """Pages by key. One thread writes; any may ask and read.

    The sizes known here are those found by the last look at the folder, and of what was written
    since. Each process looks again when it has written 1 - SWEPT_SHARE of the limit. So alone it
    never exceeds the limit, and each further process may exceed it by that share.

    Attributes:
        used: bytes in files, as far as known.
    """

    def __init__(self, path: Path, limit: int) -> None:
        """Make the folder, if need be, and look at what it holds.

        Raises:
            OSError: it cannot be made, read or written to.
        """
        self.path = path
        self.limit = limit
        self._lock = threading.Lock()
        self._sizes: dict[Key, int] = {}
        self._stuck: set[Key] = set()  # names of what is no page and cannot be removed
        self.used = 0
        self._written = 0  # since the last look at the folder
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = path / page_file.draft_name("probe")
        probe.write_bytes(b"")
        probe.unlink()
        self._sweep()

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, key: Key) -> bool:
        """Whether there is such a file, perhaps another process's."""
        return key not in self._stuck and (key in self._sizes or self._file(key).exists())

    def read(self, key: Key, size: int) -> Payload | None:
        """The page of ``size`` bytes; None, and no file any more, if it is not whole."""
        if key in self._stuck:
            return None
        file = self._file(key)
        try:
            payload = page_file.read(file, key, size)
        except FileNotFoundError:
            self._forget(key)
            return None
        except (page_file.DamagedFile, OSError) as error:
            logger.warning("a page is computed again: %s", error)
            self._remove(key)
            return None
        self.touch(key)
        return payload

    def touch(self, key: Key) -> None:
        """Count a page as used now, if it is there."""
        now = time.time_ns()  # finer than the clock by which the system would set it
        with contextlib.suppress(OSError):
            os.utime(self._file(key), ns=(now, now))

    def write(self, key: Key, payload: Payload) -> None:
        """Add a page, removing the least recently used ones if the folder is full.

        Raises:
            OSError: it cannot be written.
        """
        size = page_file.file_bytes(payload.nbytes)
        if size > self.limit or key in self._stuck:
            return
        self._written += size
        if self.used + size > self.limit or self._written > self.limit * (1 - SWEPT_SHARE):
            self._sweep(size)
        page_file.write(self._file(key), key, payload)
        with self._lock:
            self.used += size - self._sizes.get(key, 0)
            self._sizes[key] = size

    def _sweep(self, wanted: int = 0) -> None:
        """Look at all files; if they and ``wanted`` bytes exceed the limit, remove the oldest."""
        self._written = wanted
        files = self._scan()
        total = sum(size for _, size, _ in files)
        with self._lock:
            self._sizes, self.used = {key: size for _, size, key in files}, total
        if total + wanted <= self.limit:
            return
        for _, size, key in files:
            if total + wanted <= max(self.limit * SWEPT_SHARE, wanted):
                return
            self._remove(key)
            total -= size

    def _scan(self) -> list[tuple[int, int, Key]]:
        """(time of last use, bytes, key) of each page, the oldest first; other files stay alone."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                try:
                    about = entry.stat()
                except FileNotFoundError:
                    continue
                if (key := key_of(entry.name)) is not None:
                    found.append((about.st_mtime_ns, about.st_size, key))
                elif is_abandoned(entry.name, about.st_mtime):
                    Path(entry).unlink(missing_ok=True)
        return sorted(found)

    def _remove(self, key: Key) -> None:
        self._forget(key)
        try:
            self._file(key).unlink(missing_ok=True)
        except OSError as error:
            logger.warning("a page file cannot be removed, and is passed over: %s", error)
            self._stuck.add(key)

    def _forget(self, key: Key) -> None:
        with self._lock:
            self.used -= self._sizes.pop(key, 0)

    def _file(self, key: Key) -> Path:
        return self.path / (key.hex() + SUFFIX)


def key_of(name: str) -> Key | None:
    """The key that a file's name spells; None if it is no page's."""
    stem, dot, kind = name.partition(SUFFIX)
    if not dot or kind or len(stem) != 2 * KEY_BYTES:
        return None
    try:
        key = bytes.fromhex(stem)
    except ValueError:
        return None
    return key if key.hex() == stem else None


def is_abandoned(name: str, written: float) -> bool:
    return name.endswith(".draft") and time.time() - written > DRAFT_SECONDS
