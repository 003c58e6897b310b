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


@dataclass(frozen=True)
class Noise:
    """What else ran just before a round.

    ``load_average`` is the last minute's and counts the round before, too; ``busy`` is the share
    of all cores' time in use while every contestant idled.
    """

    load_average: float
    busy: float

    def __str__(self) -> str:
        return f"load average {self.load_average:.2f}, cores {self.busy:.0%} busy with other work"


def listen(seconds: float = 2.0) -> Noise:
    load_average = os.getloadavg()[0]
    total, idle = cpu_ticks()
    time.sleep(seconds)
    total_after, idle_after = cpu_ticks()
    return Noise(load_average, 1 - (idle_after - idle) / (total_after - total))


def cpu_ticks() -> tuple[int, int]:
    """All cores' time since the machine started, and how much of it they idled."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    ticks = [int(field) for field in fields]
    _, _, _, idle, iowait, *_ = ticks
    return sum(ticks), idle + iowait


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
