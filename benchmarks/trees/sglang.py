"""SGLang's radix tree, from ``pip install --no-deps sglang==0.5.3``: its Python alone.

The package imports most of what it needs on a GPU when it is itself imported, and the tree names
the classes of its pools in annotations. Neither is needed to run the tree, so the package stays
unexecuted and empty modules stand in for the pools'.

Raises, when imported:
    ImportError: sglang is not installed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

import torch

from trees.tree import PAGE, Tokens


def stand_in(name: str, *classes: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    for each in classes:
        setattr(module, each, object)
    return module


spec = find_spec("sglang")
if spec is None or spec.submodule_search_locations is None:
    raise ImportError("sglang is not installed")
stand_in("sglang").__path__ = list(spec.submodule_search_locations)
stand_in("sglang.srt.mem_cache.allocator", "BaseTokenToKVPoolAllocator")
stand_in("sglang.srt.mem_cache.memory_pool", "ReqToTokenPool")

# Only now are there modules that it can find.
from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey  # noqa: E402


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
