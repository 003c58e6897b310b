"""From a configuration to the memory of sequences: pages, the tree over them, tiers and events."""

from __future__ import annotations

from pathlib import Path

from phloem.kernels.ops import Ops
from phloem.radix_cache import KVPool, PagePool, RadixCache
from phloem.radix_cache.tiers import DiskStore, HostStore, Tiers
from phloem.runtime.config import EngineConfig
from phloem.runtime.errors import ModelError
from phloem.runtime.fingerprint import fingerprint
from phloem.runtime.kv_events import KVEvents
from phloem.runtime.kv_events.publisher import EventPublisher
from phloem.runtime.scheduling.memory import SequenceMemory


def make_memory(config: EngineConfig, path: str, ops: Ops, kv: KVPool) -> SequenceMemory:
    """Memory for sequences of the model at ``path``.

    Raises:
        ModelError: there is no tree to serve, or the disk cannot be used.
    """
    pool = PagePool(kv.num_pages, config.page_size)
    if not config.prefix_cache:
        check_unused(config)
        return SequenceMemory(pool, None)
    tree = RadixCache(pool, config.eviction_policy)
    if not config.host_cache_bytes and config.disk_cache is None:
        return SequenceMemory(pool, tree)
    tiers = Tiers(
        tree,
        pool,
        kv,
        fingerprint(config, path, ops, kv),
        host=HostStore(config.host_cache_bytes),
        disk=open_disk(config),
        write=config.disk_write,
    )
    return SequenceMemory(pool, tree, tiers)


def check_unused(config: EngineConfig) -> None:
    """Refuse what would do nothing without the prefix cache."""
    for option in ("host_cache_bytes", "disk_cache", "kv_events"):
        if getattr(config, option):
            raise ModelError(f"prefix_cache: {option} needs the prefix cache")


def open_disk(config: EngineConfig) -> DiskStore | None:
    if config.disk_cache is None:
        return None
    path = Path(config.disk_cache).expanduser()
    try:
        return DiskStore(path, config.disk_cache_bytes)
    except OSError as error:
        raise ModelError(f"disk_cache: {path} cannot be used: {error}") from error


def make_kv_events(config: EngineConfig, memory: SequenceMemory) -> KVEvents | None:
    """Raise ModelError if an address cannot be bound, or there is only one for replays."""
    if config.kv_events_replay and config.kv_events is None:
        raise ModelError("kv_events_replay: there is nothing to replay without kv_events")
    if config.kv_events is None or memory.tree is None:
        return None
    publisher = EventPublisher(config.kv_events, config.kv_events_replay)
    return KVEvents(memory.tree, memory.page_size, publisher)
