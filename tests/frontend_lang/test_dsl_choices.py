"""How select decides, and where it begins to count."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import phloem as ph
from phloem.frontend_lang.backends.scoring import common_length
from phloem.frontend_lang.choices import Scored


def scored(tokens, logprobs, unconditional=None):
    return Scored(tuple(tokens), tuple(logprobs), unconditional and tuple(unconditional))


def test_length_normalised_prefers_the_better_mean_and_the_first_of_equals():
    decide = ph.token_length_normalized.decide
    short, long = scored([1], [-1.0]), scored([2, 3, 4], [-0.9, -0.9, -0.9])
    assert decide([short, long]).index == 1
    assert decide([short, short]).index == 0
    assert decide([short, long]).meta["normalized_prompt_logprobs"] == pytest.approx([-1, -0.9])


def test_greedy_follows_the_likeliest_first_token_even_if_its_rest_is_poor():
    decide = ph.greedy_token_selection.decide
    poor_rest, good_mean = scored([1, 2], [-0.1, -9.0]), scored([3, 4], [-0.5, -0.5])
    assert decide([good_mean, poor_rest]).index == 1
    assert ph.token_length_normalized.decide([good_mean, poor_rest]).index == 0


def test_greedy_compares_tokens_and_not_their_rounded_values():
    """The same token scored in two batches may differ in its last bits."""
    decide = ph.greedy_token_selection.decide
    shared = -0.1
    a = scored([7, 1], [math.nextafter(shared, 0), -3.0])
    b = scored([7, 2], [shared, -0.2])
    assert decide([a, b]).index == 1


def test_greedy_lets_a_choice_that_ended_compete_with_its_mean():
    decide = ph.greedy_token_selection.decide
    stem = scored([7], [-0.1])
    likely, unlikely = scored([7, 8], [-0.1, -0.05]), scored([7, 8], [-0.1, -2.0])
    assert decide([stem, likely]).index == 1
    assert decide([stem, unlikely]).index == 0


def test_unconditional_normalised_prefers_what_the_text_made_likelier():
    decide = ph.unconditional_likelihood_normalized.decide
    frequent = scored([1], [-1.0], [-1.0])
    fitting = scored([2], [-2.0], [-6.0])
    assert decide([frequent, fitting]).index == 1
    assert ph.token_length_normalized.decide([frequent, fitting]).index == 0


METHODS = [
    ph.token_length_normalized,
    ph.greedy_token_selection,
    ph.unconditional_likelihood_normalized,
]
logprobs = st.floats(-50, 0)
token = st.tuples(st.integers(0, 5), logprobs, logprobs)
choice = st.lists(token, min_size=1, max_size=6).map(lambda rows: scored(*zip(*rows, strict=True)))


@given(st.sampled_from(METHODS), st.lists(choice, min_size=1, max_size=6))
def test_every_method_picks_one_of_any_choices(method, choices):
    assert 0 <= method.decide(choices).index < len(choices)


@given(
    st.lists(st.integers(0, 2), max_size=8),
    st.lists(st.lists(st.integers(0, 2), max_size=8), min_size=1, max_size=5),
)
def test_common_length_is_the_longest_shared_head(head, tails):
    sequences = [head + tail for tail in tails]
    length = common_length(sequences)
    assert length >= len(head)
    assert len({tuple(s[:length]) for s in sequences}) == 1
    assert (
        len({tuple(s[: length + 1]) for s in sequences}) > 1 or min(map(len, sequences)) == length
    )
