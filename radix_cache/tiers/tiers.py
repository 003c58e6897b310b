"""Device, host and disk as one cache: pages leave the device for lower tiers, and come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from time import monotonic
from typing import Literal

import numpy as np

from phloem.radix_cache.kv_pool import KVPool
from phloem.radix_cache.page_pool import PagePool, Pages
from phloem.radix_cache.results import Insert
from phloem.radix_cache.runs import Tokens
from phloem.radix_cache.tiers.disk import CLOSE_SECONDS, DiskStore
from phloem.radix_cache.tiers.host import HostStore
from phloem.radix_cache.tiers.keys import Key, PageKeys
from phloem.radix_cache.tiers.raw_pages import Payload, RawPages
from phloem.radix_cache.tree import RadixCache

WritePolicy = Literal["through", "back"]
"""When a page is written to disk: as it enters the tree, or when the tiers above let it go."""

LOAD_BYTES = 64 << 20
"""Read into the device's pages in one call: what others have to wait for."""


class Tiers:
    """The tiers below a tree's pool.

    Pages come back by ``restore``, into the tree; nobody reads them elsewhere. One loop owns this.

    Attributes:
        restored_from_host, restored_from_disk: pages that were found below so far.
    """

    def __init__(
        self,
        tree: RadixCache,
        pool: PagePool,
        kv: KVPool,
        fingerprint: bytes,
        *,
        host: HostStore,
        disk: DiskStore | None = None,
        write: WritePolicy = "through",
    ) -> None:
        """``fingerprint``: of all that a page's content depends on beside tokens and namespace."""
        self.host = host
        self.disk = disk
        self.restored_from_host = 0
        self.restored_from_disk = 0
        self._tree = tree
        self._pool = pool
        self._raw = RawPages(kv)
        self._write_through = write == "through"
        self._keys = PageKeys(fingerprint, pool.page_size)
        self._most_loaded = max(LOAD_BYTES // kv.bytes_per_page, 1)
        tree.listeners.append(self)

    # Down

    def inserted(self, namespace: str, tokens: Tokens, insert: Insert) -> None:
        """Name the pages that are new to the tree; write them through."""
        added = self._keys.add(namespace, tokens, insert)
        if self._write_through:
            for page, key in added.items():
                self._to_disk(key, page)

    def evicted(self, run: Pages) -> None:
        """Keep below what leaves the tree.

        From its end: below, too, a page then counts as used before those that lead to it, without
        which it is of no use.
        """
        for page in reversed(run.tolist()):
            key = self._keys.pop(page)
            if self.host.limit:
                self._to_host(key, page)
            else:
                self._to_disk(key, page)

    def _to_host(self, key: Key, page: int) -> None:
        if self.host.get(key) is not None:
            return
        for fallen, payload in self.host.put(key, self._raw.read(page)):
            if (disk := self._disk_without(fallen)) is not None:
                disk.put(fallen, payload)

    def _to_disk(self, key: Key, page: int) -> None:
        if (disk := self._disk_without(key)) is not None:
            disk.put(key, self._raw.read(page))

    def _disk_without(self, key: Key) -> DiskStore | None:
        """The disk, if it lacks the page; if it has it, the page counts as used there now."""
        if self.disk is None or key not in self.disk:
            return self.disk
        self.disk.touch(key)
        return None

    # Up

    def prefetch(self, namespace: str, tokens: Tokens) -> None:
        """Begin to read from disk what ``restore`` will want of it."""
        if self.disk is None:
            return
        above = self._tree.match(namespace, tokens).pages
        keys = takewhile(
            self._has, islice(self._keys.beyond(namespace, tokens, above), self._most_loaded)
        )
        wanted = (key for key in keys if key not in self.host)
        self.disk.read_ahead(wanted, self._raw.bytes_per_page)

    def _has(self, key: Key) -> bool:
        return key in self.host or (self.disk is not None and key in self.disk)

    def restore(self, namespace: str, tokens: Tokens) -> bool:
        """Bring into the tree what lower tiers hold of ``tokens`` beyond the tree's match.

        Pages are loaded from the first missing one to the first that no tier has whole; all of
        them are in memory before room is made for them, so what is promised is there.

        Returns False if this was only a part, since others wait: call again in the next step.
        """
        match = self._tree.match(namespace, tokens)
        missing = self._keys.beyond(namespace, tokens, match.pages)
        payloads = self._load(islice(missing, self._most_loaded))
        if not payloads:
            return True
        self._tree.lock(match.node)
        self._make_room(len(payloads))
        loaded = payloads[: self._pool.free]
        if loaded:
            self._insert(namespace, tokens, match.pages, loaded)
        self._tree.unlock(match.node)
        if len(loaded) < self._most_loaded:
            return True
        self.prefetch(namespace, tokens)  # the next part, while the others have their step
        return False

    def _load(self, keys: Iterable[Key]) -> list[Payload]:
        """Pages up to the first that no tier has."""
        payloads = []
        for key in keys:
            payload = self._find(key)
            if payload is None:
                break
            payloads.append(payload)
        return payloads

    def _find(self, key: Key) -> Payload | None:
        payload = self.host.get(key)
        if payload is not None:
            self.restored_from_host += 1
        elif self.disk is not None:
            payload = self.disk.get(key, self._raw.bytes_per_page)
            self.restored_from_disk += payload is not None
        return payload

    def _make_room(self, wanted: int) -> None:
        self._tree.evict(max(wanted - self._pool.free, 0))

    def _insert(
        self, namespace: str, tokens: Tokens, above: Pages, payloads: Sequence[Payload]
    ) -> None:
        """Put pages into the tree, behind those that it has."""
        fresh = self._pool.allocate(len(payloads))
        for page, payload in zip(fresh.tolist(), payloads, strict=True):
            self._raw.write(page, payload)
        pages = np.concatenate([above, fresh])
        tokens = tokens[: len(pages) * self._pool.page_size]
        self._tree.insert(namespace, tokens, pages)
        self._pool.release(fresh)  # the tree has its own references

    # Ends

    def cleared(self) -> None:
        """Forget what this process alone holds, with the tree's pages; files stay."""
        self.host.clear()
        self._keys.clear()

    def close(self) -> None:
        """Write to disk what is not there yet, as far as it fits and some seconds suffice."""
        if self.disk is None:
            return
        deadline = monotonic() + CLOSE_SECONDS
        keys = []
        for key, payload in islice(
            self._kept(self.disk), self.disk.capacity(self._raw.bytes_per_page)
        ):
            if payload is not None and not self.disk.put_patiently(key, payload, deadline):
                break
            keys.append(key)
        self.disk.close(deadline)
        for key in reversed(keys):
            self.disk.touch(key)

    def _kept(self, disk: DiskStore) -> Iterator[tuple[Key, Payload | None]]:
        """What the tree holds, the latest used and parents first; then the host's pages.

        None stands for what the disk has already.
        """
        nodes = sorted(self._tree.walk(), key=lambda node: -node.last_access)
        for page in (page for node in nodes for page in node.pages.tolist()):
            key = self._keys[page]
            yield key, None if key in disk else self._raw.read(page)
        for key, payload in self.host.items():
            yield key, None if key in disk else payload
