"""``unevaluatedProperties`` and ``unevaluatedItems``."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from normalised import SCALARS, SIMPLE, check, compiles, objects, properties, walk

PARTS = st.one_of(
    st.fixed_dictionaries({"properties": properties()}),
    st.fixed_dictionaries({"properties": properties(), "required": st.just(["a"])}),
    st.fixed_dictionaries({"patternProperties": st.just({"^x-": {"type": "integer"}})}),
    st.just({"properties": {"b": True}, "additionalProperties": True}),
    st.just({"properties": {"b": True}, "unevaluatedProperties": True}),
)
AROUND = st.one_of(
    st.fixed_dictionaries({"allOf": st.lists(PARTS, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"anyOf": st.lists(PARTS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"if": PARTS, "then": PARTS}),
    st.fixed_dictionaries({"if": PARTS, "then": PARTS, "else": PARTS}),
    st.fixed_dictionaries({"dependentSchemas": st.fixed_dictionaries({"ab": PARTS})}),
    PARTS.map(lambda part: {"$ref": "#/$defs/x", "$defs": {"x": part}}),
)


@given(
    around=AROUND,
    own=st.one_of(st.just({}), PARTS),
    rest=st.sampled_from([False, {"type": "string"}]),
    instances=st.lists(objects(), min_size=6, max_size=10),
)
@settings(max_examples=80, deadline=None)
def test_properties(bench: Bench, around: Any, own: Any, rest: Any, instances: list[Any]) -> None:
    schema = {"type": "object", **own, **around, "unevaluatedProperties": rest}
    if compiles(bench, schema, "unsupported_json_schema"):
        check(bench, schema, instances)
        walk(bench, schema, len(instances))


LISTS = st.one_of(
    st.fixed_dictionaries({"prefixItems": st.lists(SIMPLE, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"contains": st.sampled_from([{"const": 1}, {"type": "string"}])}),
    st.just({"items": True}),
)


@given(
    keyword=st.sampled_from(["allOf", "anyOf"]),
    parts=st.lists(LISTS, min_size=1, max_size=2),
    own=st.one_of(st.just({}), LISTS),
    rest=st.sampled_from([False, {"type": "null"}]),
    instances=st.lists(st.lists(SCALARS, max_size=4), min_size=6, max_size=10),
)
@settings(max_examples=60, deadline=None)
def test_items(
    bench: Bench, keyword: str, parts: Any, own: Any, rest: Any, instances: list[Any]
) -> None:
    schema = {"type": "array", **own, keyword: parts, "unevaluatedItems": rest, "maxItems": 4}
    if compiles(bench, schema):
        check(bench, schema, instances)
        walk(bench, schema, len(instances))


@pytest.mark.parametrize(("draft", "is_valid"), [("2019-09", False), ("2020-12", True)])
def test_contains_looks_at_items_since_2020(bench: Bench, draft: str, is_valid: bool) -> None:
    schema = {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "type": "array",
        "contains": {"const": 1},
        "unevaluatedItems": False,
    }
    if is_valid:
        assert bench.accepts(bench.schema(schema), "[1]")
    else:
        assert not compiles(bench, schema)
