"""What a matcher promises, whatever the engine."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from constrained_tools import Bench, mask_of
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.constrained import (
    Grammar,
    GrammarCompiler,
    GrammarKind,
    GrammarLimit,
    GrammarSpec,
    GrammarViolation,
    Matcher,
    Vocabulary,
    allocate,
)
from phloem.constrained.bitmask import pack, unpack

PERSON = {
    "type": "object",
    "properties": {"orderId": {"type": "integer"}, "name": {"type": "string", "maxLength": 9}},
    "required": ["orderId", "name"],
    "additionalProperties": False,
}
SPECS = {
    "object": GrammarSpec("json_schema", json.dumps(PERSON)),
    "any json": GrammarSpec("json_schema", "{}"),
    "json object": GrammarSpec("json_object"),
    "enum": GrammarSpec("json_schema", json.dumps({"enum": ["red", "reddish", 12, None]})),
    "regex": GrammarSpec("regex", "(ab|a)*[0-9]{2,4}é?"),
    "one text": GrammarSpec("regex", "hello world"),
    "ebnf": GrammarSpec("ebnf", 'root ::= "(" root ")" | [a-z]{1,3}'),
    "choice": GrammarSpec("choice", json.dumps(["yes", "yesterday", "no", "日本", "日本語"])),
    "one choice": GrammarSpec("choice", '["hello world"]'),
}


@pytest.fixture(params=SPECS)
def grammar(request: pytest.FixtureRequest, bench: Bench) -> Grammar:
    return bench.compiler.compile(SPECS[request.param])


def walk_states(bench: Bench, grammar: Grammar, seed: int, steps: int = 12) -> list[Matcher]:
    """Forks along one random walk, the start first."""
    rng, matcher = random.Random(seed), grammar.matcher()
    states = [matcher.fork()]
    for _ in range(steps):
        allowed = bench.allowed(matcher)
        if not allowed:
            break
        matcher.accept(rng.choice(allowed))
        states.append(matcher.fork())
    return states


def test_masks_and_validate_agree(bench: Bench, grammar: Grammar) -> None:
    size = bench.vocabulary.size
    for matcher in walk_states(bench, grammar, 1, 8):
        allowed = unpack(mask_of(matcher, size)).tolist()
        legal = [token for token in range(size) if matcher.validate([token]) == 1]
        forced = matcher.forced_tokens(1)
        if forced:
            ends = [token for token in bench.vocabulary.eos_ids if matcher.accepting]
            assert allowed == sorted(forced + ends)
            assert set(allowed) <= set(legal)
        else:
            assert allowed == legal


def test_masks_hold_text_and_eos_alone(bench: Bench, grammar: Grammar) -> None:
    eos = set(bench.vocabulary.eos_ids)
    for matcher in walk_states(bench, grammar, 2):
        allowed = set(unpack(mask_of(matcher, bench.vocabulary.size)).tolist())
        assert allowed - eos <= bench.vocabulary.text_ids
        assert allowed & eos == (eos if matcher.accepting else set())
        assert allowed
        if matcher.stopped:
            assert allowed == eos


def test_accept_then_rollback_restores_the_mask(bench: Bench, grammar: Grammar) -> None:
    size, rng = bench.vocabulary.size, random.Random(3)
    for _ in range(4):
        matcher, masks = grammar.matcher(), []
        for _ in range(10):
            masks.append(mask_of(matcher, size))
            allowed = unpack(masks[-1]).tolist()
            matcher.accept(rng.choice(allowed))
            if matcher.terminated:
                break
        back = rng.randint(1, len(masks))
        matcher.rollback(back)
        assert not matcher.terminated
        assert np.array_equal(mask_of(matcher, size), masks[len(masks) - back])


def test_eos_ends_and_can_be_taken_back(bench: Bench, grammar: Grammar) -> None:
    rng = random.Random(4)
    matcher = grammar.matcher()
    while not matcher.accepting:
        matcher.accept(rng.choice(bench.allowed(matcher)[:40]))
    before = mask_of(matcher, bench.vocabulary.size)
    for eos in bench.vocabulary.eos_ids:
        matcher.accept(eos)
        assert matcher.terminated and not matcher.accepting and not matcher.stopped
        assert matcher.validate([eos]) == 0 and matcher.accept_many([eos]) == 0
        assert matcher.forced_tokens(8) == []
        assert matcher.fork().terminated
        with pytest.raises(GrammarViolation):
            matcher.fill(allocate(1, bench.vocabulary.size)[0])
        matcher.rollback(1)
        assert np.array_equal(mask_of(matcher, bench.vocabulary.size), before)


def test_validate_counts_over_eos_and_changes_nothing(bench: Bench) -> None:
    matcher = bench.grammar("choice", '["ab", "abc"]').matcher()
    a, b, c = (bench.tokenizer.token_to_id(char) for char in "abc")
    eos = bench.vocabulary.eos_ids[0]
    before = mask_of(matcher, bench.vocabulary.size)
    assert matcher.validate([a, b, eos]) == 3
    assert matcher.validate([a, b, eos, c]) == 3
    assert matcher.validate([a, eos]) == 1
    assert matcher.validate([a, b, c, c]) == 3
    assert matcher.validate([eos]) == matcher.validate([]) == 0
    assert np.array_equal(mask_of(matcher, bench.vocabulary.size), before)
    assert matcher.accept_many([a, b, eos, c]) == 3 and matcher.terminated


def test_forks_are_independent(bench: Bench, grammar: Grammar) -> None:
    rng = random.Random(5)
    matcher = grammar.matcher()
    matcher.accept(rng.choice(bench.allowed(matcher)))
    fork = matcher.fork()
    before = mask_of(fork, bench.vocabulary.size)
    if bench.allowed(matcher):
        matcher.accept(rng.choice(bench.allowed(matcher)))
    assert np.array_equal(mask_of(fork, bench.vocabulary.size), before)
    fork.rollback(1)
    assert np.array_equal(
        mask_of(fork, bench.vocabulary.size), mask_of(grammar.matcher(), bench.vocabulary.size)
    )


@pytest.mark.parametrize("token", [-1, -(2**40), 2**40, 999, 1_002])
def test_ids_that_are_no_text_are_illegal(bench: Bench, grammar: Grammar, token: int) -> None:
    matcher = grammar.matcher()
    before = mask_of(matcher, bench.vocabulary.size)
    assert matcher.validate([token]) == 0
    with pytest.raises(GrammarViolation, match=str(token)):
        matcher.accept(token)
    assert np.array_equal(mask_of(matcher, bench.vocabulary.size), before)


def test_rollback_too_far_is_refused(bench: Bench, grammar: Grammar) -> None:
    matcher = grammar.matcher()
    matcher.accept(bench.allowed(matcher)[0])
    for count in (2, -1):
        with pytest.raises(ValueError, match="roll back"):
            matcher.rollback(count)
    matcher.rollback(0)
    matcher.rollback(1)


def test_rows_of_the_wrong_form_are_refused(bench: Bench, grammar: Grammar) -> None:
    matcher = grammar.matcher()
    wide = allocate(1, 64 * 32)[0]
    rows = [wide[:5], wide.astype(np.int64)[:32], wide[::2], allocate(1, bench.vocabulary.size)]
    for row in rows:
        with pytest.raises(ValueError, match="mask row"):
            matcher.fill(row)


@pytest.mark.parametrize(("kind", "text"), [("regex", "a[bc]"), ("choice", '["ab", "ac"]')])
def test_no_token_to_go_on_is_a_limit(kind: GrammarKind, text: str) -> None:
    """A vocabulary may lack the characters that a grammar asks for."""
    compiler = GrammarCompiler(Vocabulary([b"", b"a"], (0,)))
    matcher = compiler.compile(GrammarSpec(kind, text)).matcher()
    matcher.accept(1)
    with pytest.raises(GrammarLimit):
        matcher.fill(allocate(1, 2)[0])
    compiler.close()


DOCUMENTS: list[tuple[Any, Any]] = [
    (PERSON, {"orderId": 12, "name": "Ada"}),
    ({"properties": {"description": {"type": "string"}}, "required": ["description"],
      "type": "object", "additionalProperties": False}, {"description": "hello world"}),
    ({"const": {"value": ["hello world", None, True]}}, {"value": ["hello world", None, True]}),
    ({"enum": ["orderId", "orderName", "日本語 😀"]}, "orderName"),
    ({"items": {"enum": ["user_id", "user"]}, "type": "array", "minItems": 2}, ["user", "user_id"]),
    ({"const": "<|im_start|>"}, "<|im_start|>"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "document"), DOCUMENTS)
def test_forced_tokens_are_the_tokenizers_own(bench: Bench, schema: Any, document: Any) -> None:
    """Wherever tokens are forced, the document's own encoding goes on with just these."""
    matcher = bench.schema(schema, whitespace="compact").matcher()
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    tokens, written, saved = bench.encode(text), 0, 0
    while written < len(tokens):
        forced = matcher.forced_tokens(64)
        if "<|" not in text:  # spelled in bytes by the bench, which is not canonical
            assert forced == tokens[written : written + len(forced)]
        step = len(forced) if tokens[written : written + len(forced)] == forced else 0
        saved += step
        for token in tokens[written : written + max(1, step)]:
            matcher.accept(token)
        written += max(1, step)
    assert matcher.accepting and saved > 0


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(SPECS)), st.integers(0, 2**32), st.integers(0, 6))
def test_forced_runs_and_masks_lead_to_the_same_tokens(
    bench: Bench, name: str, seed: int, limit: int
) -> None:
    grammar = bench.compiler.compile(SPECS[name])
    by_mask, by_run, rng = grammar.matcher(), grammar.matcher(), random.Random(seed)
    for _ in range(8):
        forced = by_run.forced_tokens(limit)
        assert len(forced) <= limit
        assert by_run.accept_many(forced) == len(forced)
        for token in forced:
            assert bench.allowed(by_mask) == [token]
            by_mask.accept(token)
        allowed = bench.allowed(by_mask)
        assert allowed == bench.allowed(by_run)
        if not allowed:
            break
        token = rng.choice(allowed)
        by_mask.accept(token)
        by_run.accept(token)


def test_numpy_integers_are_tokens(bench: Bench) -> None:
    matcher = bench.grammar("regex", "[0-9]+").matcher()
    tokens = np.array(bench.encode("12345"), np.int64)
    assert matcher.validate(tokens) == len(tokens)
    assert matcher.accept_many(tokens) == len(tokens)


@given(st.sets(st.integers(0, 99)))
def test_masks_pack_and_unpack(tokens: set[int]) -> None:
    row = pack(tokens, 100)
    assert row.shape == (4,) and row.dtype == np.int32
    assert unpack(row).tolist() == sorted(tokens)


LEXER_BOMB = {"type": "string", "pattern": r"^$|(^(?:\S+\s+){0,99}\S+$)", "maxLength": 5000}


def test_a_failed_lexer_fails_one_sequence_alone(bench: Bench) -> None:
    """Copies of a llguidance matcher share a lexer, which stays failed once it hit its limit."""
    grammar = bench.schema(LEXER_BOMB)
    bystander, culprit = grammar.matcher(), grammar.matcher()
    start = mask_of(bystander, bench.vocabulary.size)
    quote = bench.encode('"')
    with pytest.raises(GrammarLimit):
        for token in bench.encode('"' + "word " * 200):
            bench.allowed(culprit)
            culprit.accept(token)
    with pytest.raises(GrammarLimit):
        bench.allowed(culprit)
    assert np.array_equal(mask_of(bystander, bench.vocabulary.size), start)
    assert np.array_equal(mask_of(grammar.matcher(), bench.vocabulary.size), start)
    assert bystander.accept_many(quote) == 1
    bystander.rollback(1)
    assert np.array_equal(mask_of(bystander.fork(), bench.vocabulary.size), start)
