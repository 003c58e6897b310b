"""Selecting on a scripted model: scores cover each choice's tokens and no others."""

from __future__ import annotations

import math

import pytest

import phloem as ph

UNLIKELY = math.log(0.1)


@ph.function
def pick(s, prefix, choices, method):
    s += prefix
    s += ph.select("choice", choices, choices_method=method)


def test_select_appends_the_likeliest_choice(scripted):
    client = scripted({"colour is": " blue"})
    state = pick.run("The colour is", [" red", " blue"], ph.token_length_normalized, backend=client)
    assert state["choice"] == " blue"
    assert state.text() == "The colour is blue"


@pytest.mark.parametrize(
    "method",
    [
        ph.token_length_normalized,
        ph.greedy_token_selection,
        ph.unconditional_likelihood_normalized,
    ],
    ids=lambda method: method.name,
)
def test_every_method_finds_what_the_model_wants(scripted, method):
    client = scripted({"is:": " a long answer"})
    choices = [" b", " a long answer", " a long letter", " a short answer"]
    assert pick.run("It is:", choices, method, backend=client)["choice"] == " a long answer"


def test_nothing_is_generated_and_all_choices_are_asked_at_once(scripted):
    client = scripted({"is:": " b"})
    pick.run("It is:", [" a", " b", " c"], ph.token_length_normalized, backend=client)["choice"]
    assert len(client.requests) == 3
    assert all(request.sampling.max_new_tokens == 0 for request in client.requests)


def test_scores_cover_exactly_the_choice(scripted, tokenizer):
    client = scripted({"is:": " b"})
    state = pick.run("It is:", [" a", " b"], ph.token_length_normalized, backend=client)
    tokens = state.get_meta_info("choice")["input_token_logprobs"]
    for choice, scores in zip([" a", " b"], tokens, strict=True):
        assert [token for _, token in scores] == tokenizer.encode(choice)


def test_a_token_across_the_boundary_counts_with_every_choice(scripted, tokenizer):
    """After "\\": " the tokenizer joins the space with what follows."""
    prefix, choices = 'name": ', ['"Ada"', "null"]
    joined = [tokenizer.encode(prefix + choice) for choice in choices]
    alone = tokenizer.encode(prefix)
    assert any(ids[: len(alone)] != alone for ids in joined), "the case is not the one meant"
    client = scripted({'name":': ' "Ada"'})
    state = pick.run(prefix, choices, ph.token_length_normalized, backend=client)
    covered = [
        tokenizer.decode([token for _, token in scores])
        for scores in state.get_meta_info("choice")["input_token_logprobs"]
    ]
    healed = covered[0].removesuffix(choices[0])
    assert covered == [healed + choice for choice in choices]
    assert prefix.endswith(healed) and healed != ""
    assert state["choice"] == '"Ada"'


def test_select_may_come_before_any_text(scripted):
    client = scripted({"<|im_end|>": "yes"})
    state = pick.run("", ["no", "yes"], ph.token_length_normalized, backend=client)
    assert state["choice"] == "yes"
    assert state.text() == "yes"


def test_one_choice_is_chosen(scripted):
    state = pick.run("It is:", ["x"], ph.greedy_token_selection, backend=scripted({"is:": "y"}))
    assert state["choice"] == "x"
