"""The machine that a benchmark runs on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
BUFFER_BYTES = 512 << 20


@dataclass(frozen=True)
class Machine:
    """``read_bandwidth`` is in bytes per second, with ``threads`` threads."""

    cpu: str
    cores: int
    flags: tuple[str, ...]
    threads: int
    read_bandwidth: float

    def __str__(self) -> str:
        return (
            f"{self.cpu}, {self.cores} cores, {' '.join(self.flags)}; memory read by "
            f"{self.threads} threads at {self.read_bandwidth / 1e9:.1f} GB/s"
        )


def inspect(threads: int) -> Machine:
    facts = cpu_facts()
    known = facts.get("flags", "").split()
    return Machine(
        cpu=facts.get("model name", "unknown CPU"),
        cores=len(os.sched_getaffinity(0)),
        flags=tuple(flag for flag in FLAGS if flag in known),
        threads=threads,
        read_bandwidth=read_bandwidth(threads),
    )


def cpu_facts() -> dict[str, str]:
    first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_bandwidth(threads: int, passes: int = 5) -> float:
    """The fastest of a few sums over a buffer that no cache holds, in bytes per second."""
    torch.set_num_threads(threads)
    buffer = torch.ones(BUFFER_BYTES // 4)
    times = []
    for _ in range(passes):
        start = time.perf_counter()
        buffer.sum()
        times.append(time.perf_counter() - start)
    return BUFFER_BYTES / min(times)
