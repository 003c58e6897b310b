"""An engine killed while it writes its cache: the next one answers as if there had been none."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
from harness import make_core, request, run_alone

from phloem.runtime.bootstrap import LoadedModel, load
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine import EngineCore

PROMPT = [(7 * i) % 180 + 20 for i in range(120)]
KILLS = 8


def answer(core: EngineCore, tenant: int) -> tuple[list[int], int]:
    """Output tokens, and how many of the prompt were cached."""
    each = request(PROMPT, max_new_tokens=8, ignore_eos=True, cache_salt=str(tenant))
    done = run_alone(core, each)[0]
    return done.token_ids, done.cached_tokens


def serve_for_ever(model: str, folder: Path, first: int) -> None:
    loaded = load(EngineConfig(model=model, dtype="float32", threads=1))
    core = make_core(loaded, disk_cache=str(folder), check_invariants=False)
    for tenant in itertools.count(first):
        answer(core, tenant)


def start(model: str, folder: Path, first: int) -> SpawnProcess:
    """A process that has begun to write."""
    before = len(list(folder.iterdir()))
    process = multiprocessing.get_context("spawn").Process(
        target=serve_for_ever, args=(model, folder, first)
    )
    process.start()
    while len(list(folder.iterdir())) == before:
        assert process.is_alive()
        time.sleep(0.01)
    return process


@pytest.mark.slow
def test_a_killed_engine_leaves_no_wrong_page(tiny: LoadedModel, tmp_path: Path) -> None:
    rng = random.Random(0)
    expected, _ = answer(make_core(tiny), 0)
    cached = 0
    for kill in range(KILLS):
        process = start(tiny.path, tmp_path, 1000 * kill)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.join()
        core = make_core(tiny, disk_cache=str(tmp_path))
        for tenant in range(1000 * kill, 1000 * kill + 30):
            tokens, hit = answer(core, tenant)
            assert tokens == expected
            cached += hit
        core.close()
    assert cached > 0
