"""Time the model's step by itself, and tell how near it comes to what the machine can do."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.native.backend import NativeOps
from phloem.runtime.bootstrap import load, make_kv_pool
from phloem.runtime.config import EngineConfig
from phloem.runtime.errors import ModelError

CONTEXT = 256
PROMPT = 512
BATCHES = 1, 8, 32
SECONDS = 1.0
"""For each measurement."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests that each compute the last ``queries`` of ``context`` tokens."""

    name: str
    requests: int
    queries: int
    context: int


WORKLOADS = [
    Workload(f"prefill {PROMPT}", 1, PROMPT, PROMPT),
    *(Workload(f"decode batch {size}", size, 1, CONTEXT) for size in BATCHES),
]


def report(config: EngineConfig, profile: bool) -> Iterator[str]:
    """Lines of text: times, shares of the machine's limits and, if asked for, time by op.

    Raises:
        ModelError: the model does not run on native ops here.
    """
    bench = StepBench(config)
    engine = bench.ops.engine
    bandwidth, peak = engine.read_bandwidth(), engine.int8_peak()
    yield (
        f"{engine.kernels}, {engine.threads} threads: reads {bandwidth / 1e9:.1f} GB/s, "
        f"{2 * peak / 1e9:.0f} int8 GOP/s"
    )
    for workload in WORKLOADS:
        seconds = bench.time(workload)
        tokens = workload.requests * workload.queries
        used = 100 * bench.products(tokens, workload.requests) / seconds / peak
        read = 100 * bench.weight_bytes / seconds / bandwidth
        yield (
            f"{workload.name}: {seconds * 1e3:.2f} ms, {tokens / seconds:.0f} tok/s, "
            f"{used:.0f} % of the int8 peak, weights at {read:.0f} % of the bandwidth"
        )
        if profile:
            yield from bench.profile(workload)


class StepBench:
    """A model's compiled step over pages that nobody filled: its time does not depend on them."""

    def __init__(self, config: EngineConfig) -> None:
        loaded = load(config)
        if not isinstance(loaded.ops, NativeOps):
            raise ModelError("bench step measures native ops, and this model runs without them")
        self.ops = loaded.ops
        self._vocabulary = loaded.model.config.vocab_size
        kv = make_kv_pool(config, loaded.model, loaded.ops)
        for side in kv.sides:
            side.zero_()
        layers = [kv.layer(i) for i in range(loaded.model.kv_geometry.num_layers)]
        self._page_size, self._num_pages = kv.page_size, kv.num_pages
        self._step = self.ops.compile(loaded.model.logits, layers)
        [self._program] = self.ops.programs
        *self._body, self._head = self._program.matrices()

    @property
    def weight_bytes(self) -> int:
        return sum(matrix.nbytes for matrix in (*self._body, self._head))

    def products(self, tokens: int, rows: int) -> int:
        """Multiply-adds with weights for so many tokens and rows of logits."""
        body = sum(matrix.rows * matrix.inputs for matrix in self._body)
        return tokens * body + rows * self._head.rows * self._head.inputs

    def time(self, workload: Workload) -> float:
        """Median seconds of a step."""
        step, batch = self._step, self._batch(workload)
        ids = torch.randint(0, self._vocabulary, (len(batch.positions),))
        rows = batch.query_start[1:].long() - 1
        times: list[float] = []
        while sum(times) < SECONDS:
            start = time.perf_counter()
            step(ids, batch, rows)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def profile(self, workload: Workload) -> Iterator[str]:
        """Each kind of op's share. Ops are timed one by one, which costs some microseconds each."""
        self._program.profile(True)
        self.time(workload)
        totals: defaultdict[str, float] = defaultdict(float)
        for op in self._program.times():
            totals[op.name] += op.seconds
        self._program.profile(False)
        whole = sum(totals.values())
        for name, seconds in sorted(totals.items(), key=lambda each: -each[1]):
            yield f"    {name:16} {100 * seconds / whole:5.1f} %"

    def _batch(self, workload: Workload) -> RaggedBatch:
        size, count = self._page_size, workload.requests
        pages = -(-workload.context // size)
        if pages * count > self._num_pages:
            raise ModelError(f"{workload.name} needs {pages * count * size} kv_tokens")
        table = torch.arange(pages * count, dtype=torch.int32).view(count, pages)
        positions = torch.arange(workload.context - workload.queries, workload.context)
        slots = table[:, positions // size] * size + positions % size
        return RaggedBatch(
            positions=positions.repeat(count),
            slots=slots.flatten().long(),
            query_start=torch.arange(count + 1, dtype=torch.int32) * workload.queries,
            kv_len=torch.full((count,), workload.context, dtype=torch.int32),
            page_table=table,
            page_size=size,
        )
