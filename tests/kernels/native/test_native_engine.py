"""Threads, memory and the processor."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import torch
from native_runner import EACH_KERNELS, RUNNING, Recorded, normal
from torch import Tensor

from phloem.kernels.native import machine
from phloem.kernels.native.backend import NativeOps
from phloem.kernels.native.library import kernels_name

MEGABYTE = 1 << 20


def small_step(ops: NativeOps) -> Recorded:
    linear = ops.prepare_linear([normal(64, 64)])
    return Recorded(ops, normal(200, 64), lambda x, *_: ops.linear(x, linear))


def expected() -> Tensor:
    return normal(200, 64).double() @ normal(64, 64).double().T


def test_names_of_kernels() -> None:
    assert kernels_name("auto") == RUNNING[0]
    assert kernels_name("no such set") is None
    assert NativeOps(1).engine.kernels == RUNNING[0]
    with pytest.raises(ValueError, match="'no such set' for this processor"):
        NativeOps(1, kernels="no such set")


@EACH_KERNELS
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_short_runs(kernels: str, threads: int) -> None:
    program = small_step(NativeOps(threads, kernels=kernels))
    first = program.first(1)
    for _ in range(1000):
        assert torch.equal(program.first(1), first)


def test_runs_with_pauses() -> None:
    """Threads that have gone to sleep wake up again."""
    program = small_step(NativeOps(3))
    for pause in (0, 1e-5, 1e-4, 1e-3, 1e-2):
        for _ in range(20):
            time.sleep(pause)
            torch.testing.assert_close(
                program.first(200).double(), expected(), rtol=1e-4, atol=1e-4
            )


@EACH_KERNELS
def test_two_engines_at_once(kernels: str) -> None:
    def work(threads: int) -> None:
        program = small_step(NativeOps(threads, kernels=kernels))
        for _ in range(200):
            torch.testing.assert_close(
                program.first(200).double(), expected(), rtol=1e-4, atol=1e-4
            )

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, threads) for threads in (2, 3)]:
            done.result(timeout=120)


def test_idle_threads_use_no_cpu() -> None:
    ops = NativeOps(4)
    program = small_step(ops)
    process = psutil.Process()
    used = []
    for _ in range(3):  # whatever else runs in this process may take some
        program.first(200)
        time.sleep(0.05)
        before = sum(process.cpu_times()[:2])
        time.sleep(0.5)
        used.append(sum(process.cpu_times()[:2]) - before)
    assert min(used) < 0.01


def test_threads_end_with_their_engine() -> None:
    gc.collect()  # those of other tests
    before = psutil.Process().num_threads()
    ops = NativeOps(6)
    small_step(ops).first(10)
    assert psutil.Process().num_threads() >= before + 5
    del ops
    gc.collect()
    assert psutil.Process().num_threads() <= before


def test_memory_of_weights_and_programs_is_freed() -> None:
    """In a process of its own: what other tests have freed would hide or feign growth."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        most, left = pool.submit(memory_over_four_programs).result(timeout=120)
    assert most < 500 * MEGABYTE
    assert left < 200 * MEGABYTE  # the arena keeps a stretch; four kept programs would be 640


def memory_over_four_programs() -> tuple[int, int]:
    """Growth in bytes, at most and after all; some 160 MB each, at most two held at once."""
    process, ops, weight = psutil.Process(), NativeOps(1), torch.ones(4096, 4096)
    wide_step(ops, weight).first(1000)  # what the first use of torch and of the arena leaves
    gc.collect()
    before, most = process.memory_info().rss, 0
    for _ in range(4):
        program = wide_step(ops, weight)
        assert program.first(1000).shape == (1000, 4096)
        most = max(most, process.memory_info().rss - before)
    del program
    gc.collect()
    return most, process.memory_info().rss - before


def wide_step(ops: NativeOps, weight: Tensor) -> Recorded:
    linear = ops.prepare_linear([weight])
    return Recorded(ops, torch.ones(1000, 4096), lambda x, *_: ops.linear(x, linear))


def test_an_engine_outlives_its_ops_while_programs_need_it() -> None:
    ops = NativeOps(2)
    program = small_step(ops)
    del ops
    gc.collect()
    assert program.first(3).shape == (3, 64)


def test_default_threads_are_cores_of_this_process() -> None:
    assert 1 <= machine.default_threads() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    "text, granted", [("150000 100000\n", 1), ("400000 100000\n", 4), ("50000 100000\n", 1)]
)
def test_a_quota_counts_whole_cpus(
    text: str, granted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(machine, "QUOTA", tmp_path / "cpu.max")
    assert machine.quota() == granted


@pytest.mark.parametrize("text", ["max 100000\n", None])
def test_without_a_quota_all_cpus_are_granted(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text:
        (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(machine, "QUOTA", tmp_path / "cpu.max")
    assert machine.quota() == os.cpu_count()


def test_siblings_of_a_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 9}, raising=False)
    monkeypatch.setattr(machine, "CPUS", tmp_path)
    for cpu in range(4):  # nothing is known of CPU 9
        topology = tmp_path / f"cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
    assert machine.physical_cores() == 3
