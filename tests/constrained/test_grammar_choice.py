"""Choices among literal strings."""

from __future__ import annotations

import json
import random

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st

CHOICES = [
    (["yes", "no\nplease"], ["no", "no\\nplease", "yesno", ""]),
    (["1", "10", "100"], ["1000", "", "11"]),
    (["", "a"], ["aa"]),
    (['say "hi"', "back\\slash", "a|b", "^$"], ['say \\"hi\\"', "a", "^"]),
    (["日本語", "日本", "😀a", "😁b"], ["日", "😀b"]),
    (["<|im_end|>", "x"], ["<|im_end|"]),
    (["same", "same"], ["sam"]),
]


@pytest.mark.parametrize(("choices", "others"), CHOICES)
def test_exactly_the_choices_pass(bench: Bench, choices: list[str], others: list[str]) -> None:
    grammar = bench.grammar("choice", json.dumps(choices))
    assert [text for text in choices if not bench.accepts(grammar, text)] == []
    assert [text for text in others if bench.accepts(grammar, text)] == []


def test_a_choice_that_begins_another_may_end_or_go_on(bench: Bench) -> None:
    matcher = bench.grammar("choice", '["1", "10"]').matcher()
    matcher.accept_many(bench.encode("1"))
    assert matcher.accepting and not matcher.stopped
    assert matcher.validate(bench.encode("0")) == 1
    matcher.accept_many(bench.encode("0"))
    assert matcher.stopped


words = st.text(alphabet="abé日😀 1\n", max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(words, min_size=1, max_size=12), st.integers(0, 2**32))
def test_walks_end_in_a_choice(bench: Bench, choices: list[str], seed: int) -> None:
    grammar = bench.grammar("choice", json.dumps(choices))
    text = bench.walk(grammar, random.Random(seed), 40)
    assert text in choices


@settings(max_examples=60, deadline=None)
@given(st.lists(words.filter(bool), min_size=1, max_size=6), words)
def test_agrees_with_llguidance(bench: Bench, choices: list[str], text: str) -> None:
    """The engine is a second implementation of what an enum of strings means."""
    own = bench.grammar("choice", json.dumps(choices)).matcher()
    spelled = " | ".join(f'"{json.dumps(choice)[1:-1]}"' for choice in dict.fromkeys(choices))
    other = bench.grammar("ebnf", f"root ::= {spelled}").matcher()
    for token in bench.encode(text):
        for candidate in bench.vocabulary.text_ids:
            assert own.validate([candidate]) == other.validate([candidate])
        if own.accept_many([token]) == 0:
            break
        other.accept(token)
    assert own.accepting == other.accepting


@settings(max_examples=100, deadline=None)
@given(st.lists(words, min_size=1, max_size=5, unique=True), st.data())
def test_forced_tokens_begin_every_rest(
    bench: Bench, choices: list[str], data: st.DataObject
) -> None:
    matcher = bench.grammar("choice", json.dumps(choices)).matcher()
    chosen = data.draw(st.sampled_from(choices))
    written = 0
    tokens = bench.encode(chosen)
    while written < len(tokens):
        forced = matcher.forced_tokens(64)
        assert forced == tokens[written : written + len(forced)]
        step = max(1, len(forced))
        assert matcher.accept_many(tokens[written : written + step]) == step
        written += step
    assert matcher.accepting
