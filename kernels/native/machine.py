"""How many threads to compute with."""

from __future__ import annotations

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def default_threads() -> int:
    """Physical cores that this process may use, and that its container's quota pays for."""
    return max(1, min(physical_cores(), quota()))


def physical_cores() -> int:
    """Cores of the affinity mask; siblings that share one count once."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    if not allowed:
        return os.cpu_count() or 1
    return len({siblings(cpu) for cpu in allowed})


def siblings(cpu: int) -> str:
    """The CPUs of the same core, as the system lists them; the CPU's own number if it does not."""
    try:
        return (CPUS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def quota() -> int:
    """Whole CPUs that the control group grants; many if it does not limit them."""
    try:
        granted, period = QUOTA.read_text().split()
        return max(1, int(granted) // int(period))
    except (OSError, ValueError):
        return os.cpu_count() or 1
