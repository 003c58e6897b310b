"""SGLang 0.5's radix tree, from ``pip install --no-deps sglang==0.5.3`` (its Python alone)."""

from __future__ import annotations

import torch
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey
from trees.tree import PAGE, Tokens


class Allocator:
    """Slots as SGLang's allocator hands them out; freeing costs next to nothing."""

    device = "cpu"

    def __init__(self, slots: int) -> None:
        self._slots = torch.arange(slots)
        self._taken = 0

    def take(self, count: int) -> torch.Tensor:
        self._taken = self._taken if self._taken + count <= len(self._slots) else 0
        self._taken += count
        return self._slots[self._taken - count : self._taken]

    def free(self, slots: torch.Tensor) -> None:
        pass


class SGLang:
    name = "sglang"

    def __init__(self, capacity: int) -> None:
        self._allocator = Allocator(capacity * PAGE)
        self._tree = RadixCache(None, self._allocator, page_size=PAGE)

    def prepare(self, tokens: Tokens) -> RadixKey:
        return RadixKey(tokens.tolist())

    def match(self, tokens: RadixKey) -> int:
        return len(self._tree.match_prefix(tokens).device_indices)

    def insert(self, tokens: RadixKey) -> None:
        self._tree.insert(tokens, self._allocator.take(len(tokens)))

    def evict(self, pages: int) -> None:
        self._tree.evict(pages * PAGE)
