"""The engine's state as its clients see it."""

from __future__ import annotations

from phloem.radix_cache.tiers import Tiers
from phloem.runtime.counters import Counters
from phloem.runtime.protocol import EngineStats
from phloem.runtime.scheduling.scheduler import Scheduler


def snapshot(scheduler: Scheduler, compiling: int, counters: Counters) -> EngineStats:
    """Current values and counters; ``compiling``: requests whose grammars are being compiled."""
    memory = scheduler.memory
    usage = memory.usage()
    return EngineStats(
        running=len(scheduler.running),
        waiting=len(scheduler.waiting),
        compiling=compiling,
        pages_total=usage.total,
        pages_free=usage.free,
        pages_evictable=usage.evictable,
        pages_protected=usage.protected,
        pages_private=usage.private,
        pinned_pages=usage.pinned,
        page_size=memory.page_size,
        evicted_pages_total=usage.evicted,
        steps_total=counters.steps,
        prompt_tokens_total=counters.prompt_tokens,
        cached_tokens_total=counters.cached_tokens,
        computed_tokens_total=counters.computed_tokens,
        generated_tokens_total=counters.generated_tokens,
        forced_tokens_total=counters.forced_tokens,
        finished_total=counters.finished,
        aborted_total=counters.aborted,
        failed_total=counters.failed,
        retracted_total=counters.retracted,
        step_seconds_total=counters.step_seconds,
        **tier_values(memory.tiers),
    )


def tier_values(tiers: Tiers | None) -> dict[str, int]:
    if tiers is None:
        return {}
    return {
        "host_cache_bytes": tiers.host.used,
        "disk_cache_bytes": tiers.disk.folder.used if tiers.disk is not None else 0,
        "host_pages_restored_total": tiers.restored_from_host,
        "disk_pages_restored_total": tiers.restored_from_disk,
    }
