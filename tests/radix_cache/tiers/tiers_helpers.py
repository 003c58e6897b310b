"""A device of a few pages whose KV spells out the tokens that it belongs to, over real tiers."""

from __future__ import annotations

from concurrent.futures import wait
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from phloem.radix_cache import KVPool, PagePool, RadixCache
from phloem.radix_cache.tiers import DiskStore, HostStore, Tiers
from phloem.radix_cache.tiers.tiers import WritePolicy

PAGE = 8
LAYERS = 2
SIDES = (((PAGE, 3), torch.int8), ((5,), torch.float32))
"""Two sides of different types and odd sizes, since tiers must not care."""
PAGE_BYTES = LAYERS * (PAGE * 3 + 5 * 4)

Tokens = tuple[int, ...]
Prefix = tuple[str, Tokens]
"""A namespace, and tokens up to the end of some page."""


def array(tokens: Tokens) -> NDArray[np.int32]:
    return np.array(tokens, dtype=np.int32)


def content(prefix: Prefix) -> NDArray[np.uint8]:
    """uint8 [PAGE_BYTES]: what a model would compute for the last page of a prefix."""
    seed = blake2b(repr(prefix).encode(), digest_size=8).digest()
    return np.random.default_rng(list(seed)).integers(0, 256, PAGE_BYTES, dtype=np.uint8)


def prefixes(namespace: str, tokens: Tokens) -> list[Prefix]:
    return [(namespace, tokens[:end]) for end in range(PAGE, len(tokens) + 1, PAGE)]


class TieredCache:
    """The cache of one process: pool, tree, tensors and tiers, and a request's way through them."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        pages: int = 8,
        host_pages: int = 0,
        disk_pages: int = 1000,
        write: WritePolicy = "through",
        fingerprint: bytes = b"model",
    ) -> None:
        self.pool = PagePool(pages, PAGE)
        self.tree = RadixCache(self.pool)
        self.kv = KVPool(LAYERS, pages, PAGE, SIDES)
        self.disk = None
        if folder is not None:
            self.disk = DiskStore(folder, disk_pages * file_size())
        self.tiers = Tiers(
            self.tree,
            self.pool,
            self.kv,
            fingerprint,
            host=HostStore(host_pages * PAGE_BYTES),
            disk=self.disk,
            write=write,
        )

    def get(self, namespace: str, tokens: Tokens) -> int:
        """Restore and match: how many leading tokens are on the device; checks their KV."""
        while not self.tiers.restore(namespace, array(tokens)):
            pass
        match = self.tree.match(namespace, array(tokens))
        held = prefixes(namespace, tokens)[: len(match.pages)]
        for prefix, page in zip(held, match.pages.tolist(), strict=True):
            assert (self.read(page) == content(prefix)).all()
        return match.length

    def put(self, namespace: str, tokens: Tokens) -> None:
        """Compute what is missing of whole pages and insert it, as a request alone would."""
        length = self.get(namespace, tokens)
        match = self.tree.match(namespace, array(tokens[:length]))
        self.tree.lock(match.node)
        whole = prefixes(namespace, tokens)
        missing = whole[len(match.pages) :]
        self.tree.evict(max(len(missing) - self.pool.free, 0))
        fresh = self.pool.allocate(len(missing))
        for page, prefix in zip(fresh.tolist(), missing, strict=True):
            self.compute(page, prefix)
        tokens = tokens[: len(whole) * PAGE]
        pages = np.concatenate([match.pages, fresh])
        self.tree.insert(namespace, array(tokens), pages)
        self.tree.unlock(match.node)
        self.pool.release(fresh)

    def compute(self, page: int, prefix: Prefix) -> None:
        self.tiers._raw.write(page, content(prefix))

    def read(self, page: int) -> NDArray[np.uint8]:
        return self.tiers._raw.read(page)

    def settle(self) -> None:
        """Wait until what was offered to the disk is written, and what was asked for is read."""
        if self.disk is not None:
            assert self.disk.writer.drain(30)
            wait(self.disk.prefetch._pages.values())

    def close(self) -> None:
        self.tiers.close()


def file_size() -> int:
    from phloem.radix_cache.tiers.page_file import file_bytes

    return file_bytes(PAGE_BYTES)


def files(folder: Path) -> list[Path]:
    """The page files, the oldest first."""
    return sorted(folder.glob("*.kv"), key=lambda file: file.stat().st_mtime)
