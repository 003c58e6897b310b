"""A sequence that was retracted ends as if it had not been, whatever its request asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from harness import drain, gather, make_core, request, run, run_alone

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Constraint, GenerateRequest
from phloem.runtime.scheduling.admission import LOWEST_FRACTION

REGEX = Constraint(kind="regex", text=r"(alpha|alphabet|beta) [0-9]{50,60}")
SCHEMA = Constraint(
    kind="json_schema",
    text=json.dumps(
        {
            "type": "object",
            "properties": {
                "identifier": {"type": "string", "minLength": 40, "maxLength": 44},
                "flag": {"type": "boolean"},
            },
            "required": ["identifier", "flag"],
            "additionalProperties": False,
        }
    ),
)
ENDLESS = {"ignore_eos": True, "max_new_tokens": 60}
SEEDED = {"temperature": 1.0, "top_p": 0.95, "seed": 11, **ENDLESS}
SCORED = {"return_logprob": True, "top_logprobs": 3, "token_ids_logprob": (7, 9)}
PENALISED = {"frequency_penalty": 0.9, "presence_penalty": 0.4, "repetition_penalty": 1.3}
HELD_TO = {"temperature": 1.0, "seed": 5, "max_new_tokens": 90}

FEATURES: dict[str, dict[str, Any]] = {
    "seed": SEEDED,
    "scores": {**ENDLESS, **SCORED},
    "scores of the prompt too": {**SEEDED, **SCORED, "logprob_start": 3},
    "penalties": {**SEEDED, **PENALISED},
    "regex": {**HELD_TO, "constraint": REGEX},
    "schema": {**HELD_TO, "constraint": SCHEMA},
    "schema and scores": {**HELD_TO, **SCORED, "constraint": SCHEMA},
    "schema and continuations": {**HELD_TO, "constraint": SCHEMA, "n": 3},
    "continuations": {**SEEDED, **SCORED, **PENALISED, "n": 3},
}
POLICIES = ("fcfs", "lpm", "dfs-weight", "priority", "shortest-prefill-first")


def batch(fields: dict[str, Any]) -> list[GenerateRequest]:
    """Requests that ask for the feature; two of them begin alike."""
    prompts = [[5 + i] * 30 for i in range(4)] + [[5] * 20 + [9] * 12]
    return [request(prompt, priority=i % 3, **fields) for i, prompt in enumerate(prompts)]


def outcome(completion: Completion) -> tuple[Any, ...]:
    """All that a client is told, but for how it came about."""
    return (
        completion.token_ids,
        completion.text,
        completion.finish,
        completion.logprobs,
        completion.prompt_logprobs,
    )


def crowded_as_roomy(
    tiny: LoadedModel, requests: list[GenerateRequest], **options: Any
) -> list[Completion]:
    """The completions in a pool that is too small; they are those in one that is not."""
    roomy = run(make_core(tiny), requests)
    core = make_core(tiny, **{"kv_tokens": 192, **options})
    core.scheduler.reserve.fraction = LOWEST_FRACTION  # as after many steps in which none ended
    crowded = run(core, requests)
    for each in requests:
        assert list(map(outcome, crowded[each.rid])) == list(map(outcome, roomy[each.rid]))
    assert core.flush_cache()
    assert core.stats().pages_free == core.stats().pages_total
    return [completion for each in requests for completion in crowded[each.rid]]


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("options", [{}, {"prefix_cache": False}, {"page_size": 1}], ids=str)
def test_retraction_changes_nothing(
    tiny: LoadedModel, feature: str, options: dict[str, Any]
) -> None:
    fields = FEATURES[feature]
    found = crowded_as_roomy(tiny, batch(fields), **options)
    assert sum(completion.retractions for completion in found) > 0
    if fields.get("return_logprob"):
        for each in found:
            assert [score.token_id for score in each.logprobs] == each.token_ids


@pytest.mark.parametrize("policy", POLICIES)
def test_retraction_changes_nothing_under_any_policy(tiny: LoadedModel, policy: str) -> None:
    fields = FEATURES["continuations"]
    found = crowded_as_roomy(tiny, batch(fields), schedule_policy=policy, max_running=4)
    assert sum(completion.retractions for completion in found) > 0


def test_a_stop_string_is_found_across_retractions(tiny: LoadedModel) -> None:
    def stopping(choose: Callable[[str], str]) -> list[GenerateRequest]:
        whole = run(make_core(tiny), batch(SEEDED))
        texts = [done[0].text for done in whole.values()]
        return [
            request(each.input_ids, stop=(choose(text), "\0never"), **SEEDED)
            for each, text in zip(batch(SEEDED), texts, strict=True)
        ]

    # Seven characters are several tokens: the beginning is held back while others run.
    found = crowded_as_roomy(tiny, stopping(lambda text: text[-12:-5]), kv_tokens=176)
    assert {each.finish.reason for each in found if each.finish} == {"stop"}
    assert sum(each.retractions for each in found) > 0
    # One that begins as the end of the text does is held back to the very end.
    crowded_as_roomy(tiny, stopping(lambda text: text[-3:] + "\0never"), kv_tokens=176)


def test_scores_of_a_prompt_are_told_once_if_it_is_retracted_half_way(tiny: LoadedModel) -> None:
    prompt = [(7 * i) % 180 + 20 for i in range(120)]
    scored = request(prompt, return_logprob=True, logprob_start=0, max_new_tokens=4)
    urgent = request([9] * 20, priority=1, max_new_tokens=2)
    # Its first 60 tokens are computed then, of which the tree keeps three pages.
    core = make_core(tiny, schedule_policy="priority", step_tokens=30)
    core.add(scored)
    deltas = [*core.step(), *core.step()]
    core.add(urgent)
    found = gather([scored, urgent], [*deltas, *drain(core)])[scored.rid][0]
    assert found.retractions == 1
    assert outcome(found) == outcome(run_alone(make_core(tiny), scored)[0])
    assert [score.token_id for score in found.prompt_logprobs] == prompt
    assert core.stats().computed_tokens_total == (120 + 60 - 48 + 3) + (20 + 1)


def test_what_loses_least_is_retracted(tiny: LoadedModel) -> None:
    """Continuations hold their prompt together: stopping one loses its own tokens only."""
    core = make_core(tiny, kv_tokens=256, schedule_policy="fcfs")
    core.scheduler.reserve.fraction = LOWEST_FRACTION
    oldest = request([3] * 16, max_new_tokens=150, ignore_eos=True)
    several = request(list(range(20, 100)), n=3, max_new_tokens=60, ignore_eos=True)
    alone = request(list(range(200, 240)), max_new_tokens=60, ignore_eos=True)
    for each in (oldest, several, alone):
        core.add(each)
    while core.stats().retracted_total == 0:
        core.step()
    assert {seq.request.rid for seq in core.scheduler.waiting} == {several.rid}
    drain(core)


@pytest.mark.parametrize("count", [1, 3])
def test_what_can_never_fit_ends_with_the_numbers(tiny: LoadedModel, count: int) -> None:
    core = make_core(tiny, kv_tokens=96)
    large = request([5] * 100, n=count)
    small = request([6] * 10, max_new_tokens=4, ignore_eos=True)
    found = run(core, [large, small])
    for each in found[large.rid]:
        assert each.finish is not None and each.finish.error is not None
        assert each.finish.error.status == 400
        assert "100 tokens" in each.finish.error.message
        assert "96 tokens" in each.finish.error.message
    assert len(found[small.rid][0].token_ids) == 4
