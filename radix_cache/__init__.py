"""Radix tree over tokens, page allocator and KV pool; stands alone."""

from phloem.radix_cache.errors import InvariantError, OutOfPages
from phloem.radix_cache.kv_pool import KVPool
from phloem.radix_cache.node import Node
from phloem.radix_cache.page_pool import PagePool
from phloem.radix_cache.pins import Pins
from phloem.radix_cache.results import Insert, Match, Partial
from phloem.radix_cache.tree import RadixCache

__all__ = [
    "Insert",
    "InvariantError",
    "KVPool",
    "Match",
    "Node",
    "OutOfPages",
    "PagePool",
    "Partial",
    "Pins",
    "RadixCache",
]
