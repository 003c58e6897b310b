"""Sharing, retraction, aborts and failures: what one request may do to others (nothing)."""

from __future__ import annotations

import json

import pytest
import torch
from harness import drain, gather, make_core, request, run, run_alone

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.errors import PhloemError
from phloem.runtime.protocol import Constraint, Delta

SHARED = [(3 * i) % 180 + 20 for i in range(100)]


def test_a_repeated_prompt_is_a_hit_to_the_token(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    # 119 tokens are computed: seven full pages, which hold the whole prompt.
    first = run_alone(core, request(SHARED, max_new_tokens=20, ignore_eos=True))[0]
    again = run_alone(core, request(SHARED, max_new_tokens=20, ignore_eos=True))[0]
    assert first.cached_tokens == 0
    assert again.cached_tokens == 99  # the last token is computed for its logits
    assert again.token_ids == first.token_ids


def test_a_hit_ends_where_prompts_differ_inside_a_page(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    run_alone(core, request(SHARED))
    other = run_alone(core, request([*SHARED[:71], 250, 251, 252]))[0]
    assert other.cached_tokens == 71
    fresh = run_alone(make_core(tiny), request([*SHARED[:71], 250, 251, 252]))[0]
    assert other.token_ids == fresh.token_ids


def test_generated_tokens_are_cached_for_the_next_turn(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    first = run_alone(core, request(SHARED, max_new_tokens=32, ignore_eos=True))[0]
    turn = [*SHARED, *first.token_ids, 60, 61]
    # 131 tokens were computed (the last one was only sampled): 8 pages of 16, then 3 tokens that
    # are in no full page.
    assert run_alone(core, request(turn))[0].cached_tokens == 128


def test_requests_that_arrive_together_compute_their_prefix_once(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    batch = [request([*SHARED, 30 + i], max_new_tokens=2) for i in range(8)]
    done = run(core, batch)
    assert sum(c.cached_tokens for each in done.values() for c in each) == 7 * 96
    assert core.stats().computed_tokens_total < len(SHARED) + 8 * 10


def test_namespaces_share_nothing(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    for fields in (
        {},
        {"cache_salt": "a"},
        {"extra_key": "a"},
        {"cache_salt": "a", "extra_key": "a"},
    ):
        assert run_alone(core, request(SHARED, **fields))[0].cached_tokens == 0
    assert run_alone(core, request(SHARED, cache_salt="a"))[0].cached_tokens == 96


def test_without_the_cache_nothing_is_kept(tiny: LoadedModel) -> None:
    core = make_core(tiny, prefix_cache=False)
    for _ in range(2):
        assert run_alone(core, request(SHARED))[0].cached_tokens == 0
    stats = core.stats()
    assert stats.pages_free == stats.pages_total


def test_n_continuations_compute_the_prompt_once(tiny: LoadedModel) -> None:
    core = make_core(tiny, prefix_cache=False)
    done = run_alone(core, request(SHARED, n=6, temperature=1.0, seed=1, max_new_tokens=8))
    assert len(done) == 6
    assert core.stats().computed_tokens_total <= len(SHARED) + 6 * 8


def test_shortage_retracts_and_resumes_with_the_same_output(tiny: LoadedModel) -> None:
    batch = [request([5 + i] * 30, max_new_tokens=60, ignore_eos=True) for i in range(6)]
    crowded_core = make_core(tiny, kv_tokens=256)
    crowded = run(crowded_core, batch)
    assert crowded_core.stats().retracted_total > 0
    roomy = run(make_core(tiny), batch)
    assert {r: c[0].token_ids for r, c in crowded.items()} == {
        r: c[0].token_ids for r, c in roomy.items()
    }


def test_a_request_that_fills_the_pool_alone_completes(tiny: LoadedModel) -> None:
    core = make_core(tiny, kv_tokens=128)
    done = run_alone(core, request(SHARED[:50], max_new_tokens=None, ignore_eos=True))[0]
    assert len(done.token_ids) + 50 == 128 - 16
    assert done.finish is not None
    assert done.finish.reason == "length"


def test_many_continuations_in_a_small_pool_complete(tiny: LoadedModel) -> None:
    core = make_core(tiny, kv_tokens=128)
    each = request(SHARED[:50], n=8, max_new_tokens=40, ignore_eos=True)
    done = run_alone(core, each)
    assert all(len(c.token_ids) == 40 for c in done)
    assert len({tuple(c.token_ids) for c in done}) == 1


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_abort_frees_pages_within_a_step(tiny: LoadedModel, after: int) -> None:
    core = make_core(tiny, step_tokens=32)
    doomed = request(SHARED, n=3, max_new_tokens=50, ignore_eos=True)
    other = request([9] * 20, max_new_tokens=10, ignore_eos=True)
    for each in (doomed, other):
        core.add(each)
    deltas: list[Delta] = []
    for _ in range(after):
        deltas += core.step()
    assert core.abort(doomed.rid)
    deltas += core.step()
    ends = [d.finish.reason for d in deltas if d.rid == doomed.rid and d.finish]
    assert ends == ["abort"] * 3
    assert not core.abort(doomed.rid)
    found = gather([doomed, other], deltas + drain(core))
    assert len(found[other.rid][0].token_ids) == 10
    assert core.stats().pages_private == core.stats().pages_protected == 0


def test_an_aborted_request_may_be_sent_again_with_the_same_rid(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    core.add(request(SHARED, rid="same"))
    core.step()
    core.abort("same")
    core.step()
    assert run_alone(core, request(SHARED, rid="same"))[0].token_ids


def test_a_rid_in_use_is_refused(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    core.add(request(SHARED, rid="twice"))
    with pytest.raises(PhloemError, match="twice"):
        core.add(request([5], rid="twice"))
    drain(core)


def test_a_bad_schema_fails_its_request_alone(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "str"}}})
    bad = request([5, 6], n=2, constraint=Constraint(kind="json_schema", text=schema))
    good = request([7, 8], max_new_tokens=4, ignore_eos=True)
    found = run(core, [bad, good])
    for completion in found[bad.rid]:
        assert completion.finish is not None
        error = completion.finish.error
        assert error is not None
        assert error.status == 400
        assert error.pointer is not None
        assert "properties/a" in error.pointer
    assert len(found[good.rid][0].token_ids) == 4


@pytest.mark.parametrize("fields", [{}, {"return_logprob": True, "top_logprobs": 2}])
def test_logits_that_are_not_finite_end_their_request_alone(
    tiny: LoadedModel, fields: dict[str, object]
) -> None:
    core = make_core(tiny)
    compute = core.executor._step

    def spoil_first_row(*inputs: torch.Tensor) -> torch.Tensor:
        logits = compute(*inputs)
        logits[0] = torch.nan
        return logits

    spoiled, sound = request(SHARED, **fields), request(SHARED[50:], **fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core.executor, "_step", spoil_first_row)
        core.add(spoiled)
        core.add(sound)
        deltas = core.step()
    done = gather([spoiled, sound], [*deltas, *drain(core)])
    finish = done[spoiled.rid][0].finish
    assert finish is not None and finish.error is not None
    assert "not finite" in finish.error.message
    expected = run_alone(make_core(tiny), request(SHARED[50:]))[0]
    assert done[sound.rid][0].token_ids == expected.token_ids


def test_a_step_that_fails_ends_its_requests_and_no_others(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = make_core(tiny)
    doomed = request(SHARED, max_new_tokens=5)
    core.add(doomed)

    def broken(*_: object) -> None:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(core.executor, "execute", broken)
        (delta,) = core.step()
    assert delta.finish is not None
    assert delta.finish.error is not None
    assert delta.finish.error.status == 500
    assert run_alone(core, request(SHARED, max_new_tokens=5))[0].token_ids


def test_flush_waits_for_running_requests(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    core.add(request(SHARED))
    core.step()
    assert not core.flush_cache()
    drain(core)
    assert core.stats().pages_evictable > 0
    assert core.flush_cache()
    assert core.stats().pages_free == core.stats().pages_total


def test_decoding_goes_on_beside_a_long_prefill(tiny: LoadedModel) -> None:
    core = make_core(tiny, step_tokens=16)
    talker = request([9] * 10, max_new_tokens=30, ignore_eos=True)
    core.add(talker)
    core.step()
    core.add(request(SHARED * 4, max_new_tokens=1))
    for _ in range(20):
        assert [d.rid for d in core.step() if d.token_ids] == [talker.rid]
    drain(core)


def test_forced_tokens_ride_in_longer_spans(tiny: LoadedModel) -> None:
    schema = {
        "type": "object",
        "properties": {"identifier": {"type": "boolean"}, "engines": {"type": "boolean"}},
        "required": ["identifier", "engines"],
        "additionalProperties": False,
    }
    constraint = Constraint(kind="json_schema", text=json.dumps(schema))
    each = request([5, 6, 7], constraint=constraint, max_new_tokens=80)
    jumping, stepping = make_core(tiny), make_core(tiny, jump_forward=False)
    jumped, stepped = run_alone(jumping, each)[0], run_alone(stepping, each)[0]
    assert jumped.token_ids == stepped.token_ids
    assert json.loads(jumped.text).keys() == {"identifier", "engines"}
    stats = jumping.stats()
    assert stats.forced_tokens_total > 0
    assert stats.steps_total == stepping.stats().steps_total - stats.forced_tokens_total
