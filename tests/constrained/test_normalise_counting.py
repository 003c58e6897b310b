"""``contains``, and ``minProperties`` and ``maxProperties`` beside optional properties."""

from __future__ import annotations

import random
from typing import Any

import pytest
from constrained_tools import Bench, mask_of, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from normalised import NAMES, SCALARS, SIMPLE, check, compiles, objects, properties, walk

from phloem.constrained.bitmask import unpack

ARRAYS = st.lists(SCALARS, max_size=6)


@given(
    contains=SIMPLE,
    bounds=st.fixed_dictionaries(
        {},
        optional={
            "minContains": st.integers(0, 3),
            "maxContains": st.integers(0, 3),
            "maxItems": st.integers(0, 5),
            "items": SIMPLE,
            "prefixItems": st.lists(SIMPLE, min_size=1, max_size=2),
        },
    ),
    instances=st.lists(ARRAYS, min_size=5, max_size=10),
)
@settings(max_examples=80, deadline=None)
def test_contains(bench: Bench, contains: Any, bounds: Any, instances: list[Any]) -> None:
    schema = {"type": "array", "contains": contains, **bounds}
    if compiles(bench, schema):
        check(bench, schema, instances)
        walk(bench, schema, len(instances))


def test_contains_says_nothing_of_other_types(bench: Bench) -> None:
    check(bench, {"contains": {"const": 1}}, [1, "b", {"a": 2}, [], [2], [[1]], [2, 1]])


def test_what_is_counted_far_behind_is_not_generated(bench: Bench) -> None:
    grammar = bench.schema({"type": "array", "contains": {"const": "x"}})
    assert any("not generated" in warning for warning in grammar.warnings)
    assert bench.accepts(grammar, str([1] * 11 + ["x"]).replace("'", '"'))
    assert not bench.accepts(grammar, str([1] * 40 + ["x"]).replace("'", '"'))


def test_bounded_arrays_are_exact(bench: Bench) -> None:
    grammar = bench.schema({"type": "array", "contains": {"const": "x"}, "maxItems": 6})
    assert grammar.warnings == ()


@given(
    listed=properties(st.sampled_from([{}, {"type": "integer"}])),
    closed=st.booleans(),
    least=st.integers(0, 4),
    most=st.one_of(st.none(), st.integers(0, 4)),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_number_of_properties(
    bench: Bench, listed: Any, closed: bool, least: int, most: int | None, data: st.DataObject
) -> None:
    required = data.draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
    schema = {
        "type": "object",
        "properties": listed,
        "required": [name for name in required if name in listed],
        "minProperties": least,
        **({"additionalProperties": False} if closed else {}),
        **({} if most is None else {"maxProperties": most}),
    }
    if compiles(bench, schema):
        check(bench, schema, data.draw(st.lists(objects(st.just(1)), min_size=6, max_size=10)))
        walk(bench, schema, least)


MANY = {"type": "object", "properties": {key: {"enum": [1, 2]} for key in "abcdefghijklmnop"}}


@pytest.mark.parametrize(
    "bounds",
    [
        {"maxProperties": 3},
        {"maxProperties": 3, "additionalProperties": False},
        {"minProperties": 3},
        {"minProperties": 3, "maxProperties": 5},
    ],
)
def test_too_many_cases_are_counted_along_the_text(bench: Bench, bounds: dict[str, Any]) -> None:
    schema = {**MANY, **bounds}
    listed = list(MANY["properties"])
    check(bench, schema, [dict.fromkeys(listed[:size], 1) for size in range(6)])
    check(bench, schema, [dict.fromkeys([*listed[:2], "y", "z"], 1)])
    grammar, rng = bench.schema(schema), random.Random(str(bounds))
    texts = [bench.walk(grammar, rng, steps) for steps in (3, 8, 20, 30) for _ in range(6)]
    finished = [text for text in texts if text is not None]
    assert finished or "minProperties" in bounds
    assert all(violations(schema, text) == [] for text in finished)


def test_masks_and_validate_agree_on_sizes(bench: Bench) -> None:
    matcher = bench.schema({**MANY, "minProperties": 2, "maxProperties": 2}).matcher()
    size = bench.vocabulary.size
    for token in bench.encode('{"a": 1, "z": {"q": [1]}}'):
        allowed = unpack(mask_of(matcher, size)).tolist()
        legal = [one for one in range(size) if matcher.validate([one]) == 1]
        assert allowed == legal or matcher.forced_tokens(1)
        matcher.accept(token)
    assert matcher.accepting


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', r'{"a": 1, "\u0061": 2}'])
def test_a_name_written_twice_counts_once(bench: Bench, text: str) -> None:
    grammar = bench.schema({"type": "object", "minProperties": 2})
    assert bench.accepts(grammar, '{"a": 1, "b": 2}')
    assert not bench.accepts(grammar, text)


def test_sizes_say_nothing_of_other_types(bench: Bench) -> None:
    schema = {"properties": {"a": {}, "b": {}}, "minProperties": 2}
    pair = [{"a": 1, "b": 1}, {"a": 1, "z": 1}, {"y": 1, "z": 1}]
    check(bench, schema, [1, [], {}, {"a": 1}, *pair])
