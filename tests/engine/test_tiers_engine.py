"""Greedy output is the same whichever tier of the cache a prompt's pages come from."""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Arithmetic, Completions, drain, gather, make_core, request, run, run_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from test_equivalence import Prompt, alone, engines, outcome, prompts

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.tiers import tiers
from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.engine import EngineCore
from phloem.runtime.errors import ModelError
from phloem.runtime.protocol import GenerateRequest

PAGE = 16
PROMPTS = [[(7 * i + 13 * stem) % 180 + 20 for i in range(70 + 9 * stem)] for stem in range(6)]
"""Five to seven pages each: a pool of twelve holds two of them."""
SMALL_POOL = {"kv_tokens": 12 * PAGE, "host_cache_bytes": 1 << 30}


def ask(prompt: list[int], **fields: object) -> GenerateRequest:
    return request(prompt, max_new_tokens=12, ignore_eos=True, **fields)


def answers(core: EngineCore) -> tuple[list[list[int]], int]:
    """Output tokens of each prompt, one after the other, and how many were cached in all."""
    done = [run_alone(core, ask(prompt))[0] for prompt in PROMPTS]
    return [each.token_ids for each in done], sum(each.cached_tokens for each in done)


@cache
def cold(arithmetic: Arithmetic) -> list[list[int]]:
    return answers(arithmetic.core(prefix_cache=False))[0]


@contextmanager
def poisoned(core: EngineCore) -> Iterator[None]:
    """Fill every page that comes free with NaN (or -1): who reads it gives itself away."""
    pool, kv = core.scheduler.memory.pool, core.executor.kv

    def poison(pages: Pages) -> None:
        free = pages[pool.references(pages) == 0].astype(np.int64)
        for side in kv.sides:
            side[:, free] = math.nan if side.is_floating_point() else -1

    def release(pages: Pages) -> int:
        freed = plain_release(pages)
        poison(pages)
        return freed

    plain_release = pool.release
    poison(np.arange(pool.total, dtype=np.int32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "release", release)
        yield


def test_pages_come_back_from_the_host(tiny_arithmetic: Arithmetic) -> None:
    core = tiny_arithmetic.core(**SMALL_POOL)
    with poisoned(core):
        for _ in range(2):
            first, _ = answers(core)
            assert first == cold(tiny_arithmetic)
        again, cached = answers(core)
    assert again == cold(tiny_arithmetic)
    assert core.stats().evicted_pages_total > 0
    assert cached >= sum(len(prompt) // PAGE * PAGE for prompt in PROMPTS)


@pytest.mark.parametrize("write", ["through", "back"])
def test_a_restarted_engine_answers_from_disk(
    tiny_arithmetic: Arithmetic, tmp_path: Path, write: str
) -> None:
    options: dict[str, Any] = {"disk_cache": str(tmp_path), "disk_write": write}
    core = tiny_arithmetic.core(kv_tokens=12 * PAGE, **options)
    assert answers(core)[0] == cold(tiny_arithmetic)
    core.close()
    again = tiny_arithmetic.core(**options)
    with poisoned(again):
        found, cached = answers(again)
    assert found == cold(tiny_arithmetic)
    assert cached >= sum(len(prompt) // PAGE * PAGE for prompt in PROMPTS)
    again.close()


stores = st.fixed_dictionaries(
    {
        "kv_tokens": st.sampled_from([160, 192, 256]),
        "prefix_cache": st.just(True),
        "host_cache_bytes": st.sampled_from([1, 1 << 15, 1 << 30]),
        "disk_write": st.sampled_from(["through", "back"]),
    }
)


@settings(max_examples=30, deadline=None)
@given(
    rounds=st.lists(st.lists(prompts, min_size=1, max_size=5), min_size=2, max_size=4),
    engine=engines,
    store=stores,
    on_disk=st.booleans(),
    loaded_at_once=st.sampled_from([1, tiers.LOAD_BYTES]),
)
def test_tiers_equivalence(
    tiny_arithmetic: Arithmetic,
    rounds: list[list[Prompt]],
    engine: dict[str, Any],
    store: dict[str, Any],
    on_disk: bool,
    loaded_at_once: int,
) -> None:
    """Rounds of requests on one cache, whose engine is restarted after each if it has a disk."""
    options = {**engine, **store}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "LOAD_BYTES", loaded_at_once)
        if on_disk:
            options["disk_cache"] = folder
        core = tiny_arithmetic.core(**options)
        for batch in rounds:
            check_round(core, tiny_arithmetic, batch)
            if on_disk:
                core.close()
                core = tiny_arithmetic.core(**options)
        core.close()


def check_round(core: EngineCore, arithmetic: Arithmetic, batch: list[Prompt]) -> None:
    """All at once, the first ones again a step later."""
    requests = [prompt.request() for prompt in [*batch, *batch[:2]]]
    with poisoned(core):
        for each in requests[: len(batch)]:
            core.add(each)
        deltas = core.step()
        for each in requests[len(batch) :]:
            core.add(each)
        found = gather(requests, deltas + drain(core))
    for prompt, each in zip([*batch, *batch[:2]], requests, strict=True):
        assert outcome(found[each.rid]) == alone(arithmetic, prompt)


def page_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kv"))


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_damaged_files_are_misses(tiny: LoadedModel, tmp_path: Path, damage: str) -> None:
    core = make_core(tiny, disk_cache=str(tmp_path))
    expected, _ = answers(core)
    core.close()
    for file in page_files(tmp_path)[::3]:
        data = bytearray(file.read_bytes())
        data[-7] ^= 1
        kinds = {"flip": data, "cut": data[:-1], "empty": b"", "foreign": b"x" * len(data)}
        file.write_bytes(kinds[damage])
    again = make_core(tiny, disk_cache=str(tmp_path))
    found, cached = answers(again)
    assert found == expected
    assert 0 < cached < sum(len(prompt) // PAGE * PAGE for prompt in PROMPTS)
    again.close()


def test_two_engines_share_a_folder_at_once(tiny: LoadedModel, tmp_path: Path) -> None:
    expected, _ = answers(make_core(tiny))
    options = {"disk_cache": str(tmp_path), "kv_tokens": 12 * PAGE, "disk_cache_bytes": 1 << 20}
    cores = [make_core(tiny, **options) for _ in range(2)]
    for turn in range(6):
        for index, core in enumerate(cores):
            at = (turn + 3 * index) % len(PROMPTS)
            assert run_alone(core, ask(PROMPTS[at]))[0].token_ids == expected[at]
    for core in cores:
        core.close()
    assert sum(file.stat().st_size for file in page_files(tmp_path)) <= 1.1 * (1 << 20)


@pytest.mark.parametrize(
    "other", [{"kv_dtype": "bfloat16"}, {"page_size": 8}, {"context_length": 256}]
)
def test_another_kind_of_page_is_never_used(
    tiny: LoadedModel, tmp_path: Path, other: dict[str, object]
) -> None:
    core = make_core(tiny, disk_cache=str(tmp_path))
    answers(core)
    core.close()
    again = make_core(tiny, disk_cache=str(tmp_path), **other)
    assert answers(again) == answers(make_core(tiny, **other))
    again.close()


def test_pages_are_read_ahead_while_a_request_waits(tiny: LoadedModel, tmp_path: Path) -> None:
    core = make_core(tiny, disk_cache=str(tmp_path))
    expected, _ = answers(core)
    core.close()
    again = make_core(tiny, disk_cache=str(tmp_path))
    assert again.scheduler.memory.tiers is not None
    assert again.scheduler.memory.tiers.disk is not None
    ahead = again.scheduler.memory.tiers.disk.prefetch
    each = ask(PROMPTS[0])
    again.add(each)
    assert len(ahead) == len(PROMPTS[0]) // PAGE
    found = gather([each], drain(again))[each.rid][0]
    assert len(ahead) == 0
    assert found.token_ids == expected[0]
    again.close()


def test_tenants_share_no_files(tiny: LoadedModel, tmp_path: Path) -> None:
    core = make_core(tiny, disk_cache=str(tmp_path))
    run_alone(core, ask(PROMPTS[0], cache_salt="a"))
    core.close()
    again = make_core(tiny, disk_cache=str(tmp_path))
    for salt, cached in (("b", 0), ("", 0), ("a", len(PROMPTS[0]) // PAGE * PAGE)):
        found = run_alone(again, ask(PROMPTS[0], cache_salt=salt))[0]
        assert found.cached_tokens // PAGE * PAGE == cached
    again.close()


def test_a_folder_that_cannot_be_used_is_refused_at_start(
    tiny: LoadedModel, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelError, match=r"disk_cache: .*file"):
        make_core(tiny, disk_cache=str(tmp_path / "file"))


def test_tiers_without_a_tree_are_refused(tiny: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="prefix_cache"):
        make_core(tiny, disk_cache=str(tmp_path), prefix_cache=False)


def test_a_folder_that_vanishes_fails_no_request(
    tiny: LoadedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = answers(make_core(tiny))
    core = make_core(tiny, disk_cache=str(tmp_path / "cache"), kv_tokens=12 * PAGE)
    shutil.rmtree(tmp_path / "cache")
    with caplog.at_level(logging.WARNING):
        assert answers(core)[0] == expected
        assert answers(core)[0] == expected
        core.close()
    assert "cannot be written" in caplog.text


def test_flush_empties_memory(tiny: LoadedModel) -> None:
    core = make_core(tiny, **SMALL_POOL)
    answers(core)
    assert core.flush_cache()
    assert answers(core)[1] == 0


def test_siblings_and_batches_over_tiers(tiny: LoadedModel) -> None:
    batch = [ask(prompt, n=2) for prompt in PROMPTS[:3]]
    expected = run(make_core(tiny), batch)
    core = make_core(tiny, **SMALL_POOL)
    with poisoned(core):
        for _ in range(3):
            again = [ask(prompt, n=2) for prompt in PROMPTS[:3]]
            found = run(core, again)
            for before, now in zip(batch, again, strict=True):
                assert [c.token_ids for c in found[now.rid]] == [
                    c.token_ids for c in expected[before.rid]
                ]


def test_a_page_that_is_to_be_copied_is_not_overwritten_by_a_restore(tiny: LoadedModel) -> None:
    """One prompt diverges inside a cached page; another's pages are loaded before the step."""
    core = make_core(tiny, kv_tokens=8 * PAGE, host_cache_bytes=1 << 30, schedule_policy="fcfs")
    short, long = PROMPTS[0][: 2 * PAGE + 1], PROMPTS[5][: 6 * PAGE + 1]
    diverging = [*short[: PAGE + 10], 200, 201, 202]
    for prompt in (long, PROMPTS[2], short):
        run_alone(core, request(prompt, max_new_tokens=1))
    batch = [ask(diverging), request(long, max_new_tokens=1)]
    with poisoned(core):
        found = run(core, batch)
    assert found[batch[0].rid][0].cached_tokens == PAGE + 10
    assert core.scheduler.memory.usage().evicted > 0
    for each in batch:
        expected = run_alone(make_core(tiny), each)[0]
        assert found[each.rid][0].token_ids == expected.token_ids


@pytest.mark.slow
def test_the_default_model_answers_alike_from_every_tier(
    real_arithmetic: Arithmetic, tmp_path: Path
) -> None:
    """Whole prompts of some hundred tokens, one pool of which does not hold two."""
    asked = [ask([(31 * i + 977 * stem) % 40_000 + 100 for i in range(400)]) for stem in range(3)]
    expected = run(real_arithmetic.core(prefix_cache=False), asked)
    core = real_arithmetic.core(
        kv_tokens=640, host_cache_bytes=1 << 30, disk_cache=str(tmp_path), max_running=1
    )
    for _ in range(2):
        assert same_tokens(run(core, asked), expected)
    core.close()
    restarted = real_arithmetic.core(disk_cache=str(tmp_path))
    found = run(restarted, asked)
    assert same_tokens(found, expected)
    assert [each[0].cached_tokens for each in found.values()] == [400 // PAGE * PAGE - PAGE] * 3
    restarted.close()


def same_tokens(found: Completions, expected: Completions) -> bool:
    return {rid: c[0].token_ids for rid, c in found.items()} == {
        rid: c[0].token_ids for rid, c in expected.items()
    }
