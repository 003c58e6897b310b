"""What the server measures, and the engine's counters, as Prometheus text.

Everything is touched by the event loop alone, so plain numbers do; prometheus_client's own
histograms would cost each token more than sending it does.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from phloem.runtime.protocol import Delta, EngineStats
from phloem.runtime.server.collect import Batch

TTFT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
TOKEN_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
E2E_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

PAGE_STATES = ("free", "evictable", "protected", "private")


class Histogram:
    """Counts of observations by upper bound, in seconds."""

    def __init__(self, name: str, help_text: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.help_text = help_text
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += times
        self.total += seconds * times

    def family(self) -> Metric:
        labels = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        buckets = list(zip(labels, accumulate(self.counts), strict=True))
        return HistogramMetricFamily(
            self.name, self.help_text, buckets=buckets, sum_value=self.total
        )


class Metrics:
    """The server's own measurements; a prometheus_client collector over them and ``stats``."""

    def __init__(self) -> None:
        self.finished: Counter[str] = Counter()
        self.first_token = Histogram(
            "phloem_time_to_first_token_seconds", "Request to first output", TTFT_BOUNDS
        )
        self.inter_token = Histogram(
            "phloem_inter_token_latency_seconds", "Between output tokens", TOKEN_BOUNDS
        )
        self.end_to_end = Histogram(
            "phloem_e2e_request_latency_seconds", "Request to last output", E2E_BOUNDS
        )
        self._stats = EngineStats()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self, stats: EngineStats) -> bytes:
        """Prometheus' text format, with ``stats`` as the engine's part."""
        self._stats = stats
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "phloem_requests", "Sequences ended, by the reason", labels=["finish_reason"]
        )
        for reason, count in self.finished.items():
            requests.add_metric([reason], count)
        yield requests
        for histogram in (self.first_token, self.inter_token, self.end_to_end):
            yield histogram.family()
        yield from _engine_families(self._stats)


def _engine_families(stats: EngineStats) -> Iterator[Metric]:
    pages = GaugeMetricFamily("phloem_pages", "KV cache pages by state", labels=["state"])
    for state in PAGE_STATES:
        pages.add_metric([state], getattr(stats, f"pages_{state}"))
    yield pages
    for name in stats.__struct_fields__:
        if not name.startswith("pages_"):
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"phloem_{name}", f"Engine: {name.replace('_', ' ')}", getattr(stats, name))


class BatchTimer:
    """Times one batch's deltas into ``metrics``."""

    def __init__(self, metrics: Metrics, batch: Batch) -> None:
        self._metrics = metrics
        self._arrived = batch.arrived
        self._last = [0.0] * batch.starts[-1]
        self._running = batch.starts[-1]

    def see(self, slot: int, delta: Delta) -> None:
        now = time.perf_counter()
        last, self._last[slot] = self._last[slot], now
        if not last:
            self._metrics.first_token.observe(now - self._arrived)
        elif count := len(delta.token_ids):
            self._metrics.inter_token.observe((now - last) / count, count)
        if delta.finish is not None:
            self._end(delta.finish.reason)
            self._metrics.end_to_end.observe(now - self._arrived)

    def _end(self, reason: str, count: int = 1) -> None:
        self._metrics.finished[reason] += count
        self._running -= count

    def close(self) -> None:
        """Count the sequences whose end did not come: the client left, or another one failed."""
        if self._running:
            self._end("dropped", self._running)
