"""Policies on a real model: the same output, one computation of what prompts share."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from harness import Arithmetic, drain, gather, make_core, request, run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_equivalence import Prompt, alone, engines, outcome, prompts

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.config import Policy

POLICIES = get_args(Policy)
SHARED = [(3 * i) % 180 + 20 for i in range(100)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("max_wait", [0.0, 60.0])
def test_requests_that_arrive_together_compute_their_prefix_once(
    tiny: LoadedModel, policy: str, max_wait: float
) -> None:
    core = make_core(tiny, schedule_policy=policy, max_wait=max_wait, step_tokens=32)
    batch = [request([*SHARED, 30 + i], max_new_tokens=2) for i in range(8)]
    done = run(core, batch)
    assert sum(c.cached_tokens for each in done.values() for c in each) == 7 * 96


def test_urgent_requests_come_first_and_change_no_output(tiny: LoadedModel) -> None:
    lows = [request([5 + i] * 30, max_new_tokens=40, ignore_eos=True) for i in range(4)]
    urgent = request([*SHARED[:40]], max_new_tokens=4, ignore_eos=True, priority=9)
    core = make_core(tiny, schedule_policy="priority", max_running=2)
    for each in lows:
        core.add(each)
    deltas = [delta for _ in range(5) for delta in core.step()]
    core.add(urgent)
    deltas += drain(core)
    ends = [delta.rid for delta in deltas if delta.finish is not None]
    assert ends[0] == urgent.rid
    found = gather([*lows, urgent], deltas)
    assert sum(found[low.rid][0].retractions for low in lows) == 1
    expected = run(make_core(tiny), [*lows, urgent])
    for rid, (done,) in found.items():
        assert done.token_ids == expected[rid][0].token_ids


def test_cached_tokens_are_those_of_the_start_and_not_of_a_try(tiny: LoadedModel) -> None:
    """A request that found no room at first may find more in the cache later."""
    core = make_core(tiny, kv_tokens=192, schedule_policy="fcfs", step_tokens=32)
    first = request(SHARED, max_new_tokens=60, ignore_eos=True)
    core.add(first)
    core.step()
    second = request([*SHARED[:96], 7, 8], max_new_tokens=60, ignore_eos=True)
    core.add(second)
    done = gather([first, second], drain(core))
    assert done[second.rid][0].cached_tokens == 96
    assert core.stats().cached_tokens_total == 96


@settings(max_examples=25, deadline=None)
@given(
    batch=st.lists(st.tuples(prompts, st.integers(-1, 1)), min_size=1, max_size=7),
    engine=engines,
    policy=st.sampled_from(POLICIES),
    max_wait=st.sampled_from([0.0, 60.0]),
    together=st.integers(0, 7),
)
def test_no_policy_changes_an_output(
    tiny_arithmetic: Arithmetic,
    batch: list[tuple[Prompt, int]],
    engine: dict[str, Any],
    policy: str,
    max_wait: float,
    together: int,
) -> None:
    core = tiny_arithmetic.core(**{**engine, "schedule_policy": policy, "max_wait": max_wait})
    requests = [
        msgspec.structs.replace(prompt.request(), priority=priority) for prompt, priority in batch
    ]
    for each in requests[:together]:
        core.add(each)
    deltas = []
    for each in requests[together:]:
        deltas += core.step()
        core.add(each)
    found = gather(requests, deltas + drain(core))
    for (prompt, _), each in zip(batch, requests, strict=True):
        assert outcome(found[each.rid]) == alone(tiny_arithmetic, prompt)
    assert core.flush_cache()
    assert core.stats().pages_free == core.stats().pages_total
