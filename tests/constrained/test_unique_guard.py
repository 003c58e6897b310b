"""Arrays whose items must differ, by the guard along the text."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from constrained_tools import Bench, mask_of, violations
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.constrained import GrammarError, Matcher
from phloem.constrained.bitmask import unpack
from phloem.constrained.guards.equality import key_of


def unique(items: Any = True, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


CLOSED = {"additionalProperties": False}
POINT = {
    "type": "object",
    "properties": {"x": {"enum": [1, 2]}, "y": {"type": "boolean"}},
    "required": ["x", "y"],
    **CLOSED,
}
SCHEMAS: dict[str, Any] = {
    "strings": unique({"type": "string"}),
    "short strings": unique({"type": "string", "maxLength": 1, "pattern": "^[ab]$"}),
    "enum": unique({"enum": ["red", "reddish", 1, None, "green"]}),
    "enum, at least two": unique({"enum": ["a", "b", "c"]}, minItems=2),
    "anything": unique(),
    "integers": unique({"type": "integer", "minimum": 0, "maximum": 12}),
    "numbers": unique({"type": "number"}),
    "booleans": unique({"type": "boolean"}),
    "closed objects": unique(POINT),
    "open objects": unique({"type": "object", "properties": {"n": {"type": "integer"}}}),
    "arrays": unique(unique({"enum": [1, 2]}, minItems=1)),
    "tuple": {"type": "array", "prefixItems": [{"const": 1}, {}], "uniqueItems": True},
    "nothing left after the first": {
        "type": "array",
        "prefixItems": [{"const": 1}],
        "items": {"const": 1},
        "uniqueItems": True,
    },
    "members": {
        "type": "object",
        "properties": {"a": unique({"type": "boolean"}), "b": {"items": {"type": "boolean"}}},
        "patternProperties": {"^c": unique({"type": "null"})},
        "additionalProperties": {"type": "boolean"},
    },
    "one or many": {"anyOf": [{"type": "string"}, unique({"enum": ["x", "y"]}, minItems=1)]},
    "tree": {
        "type": "object",
        "properties": {"c": unique({"$ref": "#"})},
        "required": ["c"],
        **CLOSED,
    },
    "draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "boolean"}],
        "additionalItems": {"enum": [True, 0]},
        "uniqueItems": True,
        "type": "array",
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_walks_hold_no_item_twice(bench: Bench, name: str) -> None:
    grammar = bench.schema(SCHEMAS[name])
    rng = random.Random(name)
    texts = [bench.walk(grammar, rng, steps) for steps in (4, 9, 16, 30) for _ in range(8)]
    finished = [text for text in texts if text is not None]
    assert finished
    for text in finished:
        assert violations(SCHEMAS[name], text) == [], text


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_and_validate_agree(bench: Bench, name: str) -> None:
    grammar = bench.schema(SCHEMAS[name])
    size = bench.vocabulary.size
    for matcher in states(bench, grammar.matcher(), random.Random(name), 10):
        allowed = unpack(mask_of(matcher, size)).tolist()
        legal = [token for token in range(size) if matcher.validate([token]) == 1]
        forced = matcher.forced_tokens(1)
        if forced:
            assert set(forced) <= set(allowed) <= set(legal)
        else:
            assert allowed == legal


def states(bench: Bench, matcher: Matcher, rng: random.Random, steps: int) -> list[Matcher]:
    """Forks along a walk that likes to write what it wrote before."""
    found, written = [matcher.fork()], list[int]()
    for _ in range(steps):
        allowed = bench.allowed(matcher)
        if not allowed:
            break
        before = [token for token in allowed if token in written]
        written.append(rng.choice(before or allowed))
        matcher.accept(written[-1])
        found.append(matcher.fork())
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_rollback_is_no_change(bench: Bench, name: str) -> None:
    grammar = bench.schema(SCHEMAS[name])
    rng = random.Random(name)
    matcher = grammar.matcher()
    masks = [mask_of(matcher, bench.vocabulary.size)]
    for _ in range(90):
        allowed = bench.allowed(matcher)
        if not allowed:
            break
        matcher.accept(rng.choice(allowed))
        masks.append(mask_of(matcher, bench.vocabulary.size))
    while len(masks) > 1:
        back = min(rng.choice((1, 3, 70)), len(masks) - 1)
        matcher.rollback(back)
        del masks[-back:]
        assert (mask_of(matcher, bench.vocabulary.size) == masks[-1]).all()


def test_rollback_over_an_item_forgets_it(bench: Bench) -> None:
    matcher = bench.schema(SCHEMAS["strings"]).matcher()
    first, second = bench.encode('["a"'), bench.encode(',"a"')
    assert matcher.accept_many(first) == len(first)
    assert matcher.accept_many(second) < len(second)
    matcher = bench.schema(SCHEMAS["strings"]).matcher()
    matcher.accept_many(first)
    matcher.rollback(len(first))
    assert matcher.accept_many(bench.encode('["b","a"')) == len(bench.encode('["b","a"'))


@pytest.mark.parametrize(
    ("items", "repeated"),
    [
        ({"type": "string"}, r'["a", "\u0061"]'),
        ({"type": "string"}, r'["é", "\u00E9"]'),
        ({"type": "number"}, "[1, 1.0]"),
        ({"type": "number"}, "[1e2, 100]"),
        ({"type": "number"}, "[0, -0.0]"),
        ({"type": "object"}, '[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]'),
        (True, "[[1, {}], null, [1.0, {}]]"),
        (True, "[null, null]"),
    ],
)
def test_equal_is_equal_by_value(bench: Bench, items: Any, repeated: str) -> None:
    assert not bench.accepts(bench.schema(unique(items)), repeated)


@pytest.mark.parametrize(
    "text", ["[1, true, 0, false]", '["1", 1]', "[[], {}]", '[{"a": 1}, {"a": 2}]', '["", " "]']
)
def test_alike_is_not_equal(bench: Bench, text: str) -> None:
    assert bench.accepts(bench.schema(unique()), text)


def test_no_item_is_begun_when_none_is_left(bench: Bench) -> None:
    matcher = bench.schema(unique({"enum": ["a", "b"]})).matcher()
    matcher.accept_many(bench.encode('["b","a"'))
    assert not any(b"," in bench.decode([token]) for token in bench.allowed(matcher))


def test_the_last_item_left_is_written(bench: Bench) -> None:
    for name in ("enum", "enum, at least two", "booleans", "short strings", "closed objects"):
        grammar, rng = bench.schema(SCHEMAS[name]), random.Random(name)
        for _ in range(10):
            assert greedy_walk(bench, grammar.matcher(), rng) is not None, name


def greedy_walk(bench: Bench, matcher: Matcher, rng: random.Random) -> str | None:
    """Writes items as long as it may; no dead end comes up."""
    tokens: list[int] = []
    for _ in range(400):
        allowed = [t for t in bench.allowed(matcher) if not bench.decode([t]).isspace()]
        longer = [t for t in allowed if b"]" not in bench.decode([t])]
        if not allowed:
            return bench.decode(tokens).decode()
        tokens.append(rng.choice(longer or allowed))
        matcher.accept(tokens[-1])
    return None


def test_more_items_than_values_is_refused(bench: Bench) -> None:
    with pytest.raises(GrammarError):
        bench.schema(unique({"enum": ["a", "b"]}, minItems=3))


VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -2, "", "a", "1", "é\\"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(items=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
def test_accepted_if_and_only_if_valid(bench: Bench, items: list[Any], indent: int | None) -> None:
    text = json.dumps(items, ensure_ascii=False, indent=indent)
    valid = violations({"uniqueItems": True}, text) == []
    assert bench.accepts(bench.schema({"type": "array", "uniqueItems": True}), text) == valid


POOLS = {
    "enum": ["red", "reddish", 1, None, "green", "re"],
    "integers": [0, 1, 10, 12, 13],
    "closed objects": [{"x": x, "y": y} for x in (1, 2) for y in (True, False)],
    "arrays": [[1], [2], [1, 2], [2, 1], [1, 1], []],
}


@given(name=st.sampled_from(list(POOLS)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_finite_items(bench: Bench, name: str, data: st.DataObject) -> None:
    text = json.dumps(data.draw(st.lists(st.sampled_from(POOLS[name]), max_size=6)))
    valid = violations(SCHEMAS[name], text) == []
    assert bench.accepts(bench.schema(SCHEMAS[name]), text) == valid


@given(first=VALUES, second=VALUES)
def test_keys_are_equal_as_jsonschema_says(first: Any, second: Any) -> None:
    same = key_of(json.dumps(first).encode()) == key_of(json.dumps(second).encode())
    assert same == bool(violations({"uniqueItems": True}, json.dumps([first, second])))
