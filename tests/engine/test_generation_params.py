"""Each sampling parameter does what its name says, on a real (tiny) model."""

from __future__ import annotations

import math

import pytest
from harness import drain, gather, make_core, request, run, run_alone

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.engine import EngineCore
from phloem.runtime.protocol import Finish

PROMPT = list(range(20, 50))
EOS = 2


@pytest.fixture(scope="module")
def core(tiny: LoadedModel) -> EngineCore:
    return make_core(tiny)


def ids(core: EngineCore, prompt: list[int] = PROMPT, **fields: object) -> list[int]:
    return run_alone(core, request(prompt, **fields))[0].token_ids


def test_max_new_tokens_ends_with_length(core: EngineCore) -> None:
    done = run_alone(core, request(PROMPT, max_new_tokens=5, ignore_eos=True))[0]
    assert len(done.token_ids) == 5
    assert done.finish == Finish(reason="length")


def test_zero_new_tokens_only_caches_the_prompt(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    done = run_alone(core, request(PROMPT, max_new_tokens=0))[0]
    assert done.token_ids == []
    assert done.finish == Finish(reason="length")
    assert run_alone(core, request(PROMPT, max_new_tokens=1))[0].cached_tokens == 16


def test_none_generates_to_the_end_of_the_context(tiny: LoadedModel) -> None:
    core = make_core(tiny, context_length=64)
    done = run_alone(core, request(PROMPT, max_new_tokens=None, ignore_eos=True))[0]
    assert len(done.token_ids) == 64 - len(PROMPT)


def test_eos_ends_the_sequence_and_shows_no_text(core: EngineCore) -> None:
    done = run_alone(core, request(PROMPT, logit_bias={EOS: 100.0}))[0]
    assert done.token_ids == [EOS]
    assert done.text == ""
    assert done.finish == Finish(reason="stop", matched=EOS)


def test_ignore_eos_goes_on(core: EngineCore) -> None:
    done = run_alone(
        core, request(PROMPT, logit_bias={EOS: 100.0}, ignore_eos=True, max_new_tokens=4)
    )[0]
    assert done.token_ids == [EOS] * 4


def test_min_new_tokens_forbids_every_end(core: EngineCore) -> None:
    bias = {EOS: 100.0, 60: 99.0}
    tokens = ids(core, logit_bias=bias, min_new_tokens=3, stop_token_ids=(60,), max_new_tokens=9)
    assert len(tokens) == 4
    assert not {EOS, 60} & set(tokens[:3])
    assert tokens[3] == EOS


def test_stop_token_ids_end_the_sequence(core: EngineCore) -> None:
    plain = ids(core, max_new_tokens=8, ignore_eos=True)
    done = run_alone(core, request(PROMPT, stop_token_ids=(plain[3],), ignore_eos=True))[0]
    first = plain.index(plain[3])
    assert done.token_ids == plain[: first + 1]
    assert done.finish == Finish(reason="stop", matched=plain[3])


@pytest.mark.parametrize("keep", [False, True])
def test_a_stop_string_cuts_the_text(core: EngineCore, keep: bool) -> None:
    whole = run_alone(core, request(PROMPT, max_new_tokens=24, ignore_eos=True))[0].text
    stop = whole[6:9]
    done = run_alone(
        core,
        request(PROMPT, max_new_tokens=24, ignore_eos=True, stop=(stop,), no_stop_trim=keep),
    )[0]
    end = whole.index(stop) + (len(stop) if keep else 0)
    assert done.text == whole[:end]
    assert done.finish == Finish(reason="stop", matched=stop)


def test_text_held_back_for_a_stop_comes_at_the_end(core: EngineCore) -> None:
    whole = run_alone(core, request(PROMPT, max_new_tokens=12, ignore_eos=True))[0].text
    never = whole[-2:] + "\0never"
    done = run_alone(core, request(PROMPT, max_new_tokens=12, ignore_eos=True, stop=(never,)))[0]
    assert done.text == whole


def test_a_seed_repeats_and_seeds_differ(core: EngineCore) -> None:
    runs = [ids(core, temperature=1.0, seed=seed, ignore_eos=True) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_a_seeded_draw_does_not_depend_on_the_batch(core: EngineCore) -> None:
    sampled = {"temperature": 1.0, "top_p": 0.9, "seed": 7, "max_new_tokens": 12}
    alone = ids(core, **sampled)
    batch = [request(PROMPT, **sampled), *(request([3 + i] * 9, **sampled) for i in range(5))]
    assert run(core, batch)[batch[0].rid][0].token_ids == alone


def test_n_continuations_of_a_seed_differ(core: EngineCore) -> None:
    done = run_alone(
        core, request(PROMPT, n=4, temperature=1.5, seed=3, max_new_tokens=12, ignore_eos=True)
    )
    assert len({tuple(c.token_ids) for c in done}) == 4


def test_requests_without_a_seed_differ(core: EngineCore) -> None:
    first, second = (ids(core, temperature=1.5, max_new_tokens=12) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("limit", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 0.999}])
def test_the_tightest_limits_are_greedy(core: EngineCore, limit: dict[str, float]) -> None:
    assert ids(core, temperature=2.0, **limit) == ids(core, temperature=0.0)


def test_frequency_penalty_wears_a_favourite_out(core: EngineCore) -> None:
    favourite = {"logit_bias": {100: 30.0}, "max_new_tokens": 40, "ignore_eos": True}
    assert ids(core, **favourite) == [100] * 40
    worn = ids(core, frequency_penalty=2.0, **favourite)
    assert 5 < worn.count(100) < 30


def test_minus_infinity_is_not_revived_by_a_bias(core: EngineCore) -> None:
    tokens = ids(core, logit_bias={EOS: 100.0}, min_new_tokens=5, max_new_tokens=5)
    assert EOS not in tokens


def test_logprobs_are_of_the_model_before_any_change(core: EngineCore) -> None:
    fields = {"return_logprob": True, "top_logprobs": 5, "token_ids_logprob": (7, 9)}
    plain = run_alone(core, request(PROMPT, max_new_tokens=1, **fields))[0].logprobs[0]
    hot = request(PROMPT, max_new_tokens=1, temperature=5.0, seed=1, logit_bias={7: 1.0}, **fields)
    changed = run_alone(core, hot)[0].logprobs[0]
    assert changed.top == plain.top
    assert dict(changed.chosen).keys() == {7, 9}
    assert changed.chosen == plain.chosen
    assert plain.top[0] == (plain.token_id, plain.logprob)


def test_top_probabilities_are_sorted_and_below_one(core: EngineCore) -> None:
    done = run_alone(core, request(PROMPT, return_logprob=True, top_logprobs=20))[0]
    assert len(done.logprobs) == len(done.token_ids)
    for score in done.logprobs:
        values = [logprob for _, logprob in score.top]
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) <= 1 + 1e-5


@pytest.mark.parametrize("stops", [{}, {"stop": ("zz",)}, {"n": 3, "temperature": 1.0}])
def test_without_streaming_news_come_with_the_first_token_and_the_end(
    tiny: LoadedModel, stops: dict[str, object]
) -> None:
    fields = {"max_new_tokens": 12, "ignore_eos": True, "seed": 1, **stops}
    streamed = run_alone(make_core(tiny), request(PROMPT, **fields))
    quiet, core = request(PROMPT, stream=False, **fields), make_core(tiny)
    core.add(quiet)
    deltas = drain(core)
    assert len(deltas) == 2 * quiet.sampling.n
    for delta in deltas:
        assert (len(delta.token_ids) == 1) == (delta.finish is None)
    for ours, theirs in zip(gather([quiet], deltas)[quiet.rid], streamed, strict=True):
        assert (ours.token_ids, ours.text) == (theirs.token_ids, theirs.text)
