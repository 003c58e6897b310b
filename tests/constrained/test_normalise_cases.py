"""``if`` and the dependencies on a property."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench, schema_spec
from hypothesis import given, settings
from hypothesis import strategies as st
from logic_schemas import INSTANCES, NAMES, PLAIN
from normalised import check, compiles, walk

from phloem.constrained import check as admit
from phloem.constrained import json_schema

ADDRESS = {
    "type": "object",
    "properties": {
        "country": {"enum": ["US", "NL"]},
        "zip": {"type": "string"},
    },
    "required": ["country", "zip"],
    "if": {"properties": {"country": {"const": "NL"}}},
    "then": {"properties": {"zip": {"pattern": "^[0-9]{4}[A-Z]{2}$"}}},
    "else": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
}


def test_a_condition_on_a_property(bench: Bench) -> None:
    right = [{"country": "US", "zip": "12345"}, {"country": "NL", "zip": "1234AB"}]
    wrong = [{"country": "NL", "zip": "12345"}, {"country": "DE", "zip": "12345"}]
    check(bench, ADDRESS, right + wrong)
    grammar = bench.schema(ADDRESS)
    assert bench.accepts(grammar, '{"country": "US", "zip": "12345"}')  # the order stays
    walk(bench, ADDRESS, 3)


def test_a_chain_of_conditions_stays_linear() -> None:
    """One case for each value of the tag, not one for each subset of them."""
    conditions = [
        {
            "if": {"properties": {"k": {"const": number}}},
            "then": {"properties": {"v": {"maxLength": number}}},
        }
        for number in range(30)
    ]
    admitted = json_schema.admit(schema_spec({"type": "object", "allOf": conditions}).text)
    assert len(admitted.schema["anyOf"]) <= len(conditions) + 2


CASES: list[tuple[Any, list[Any]]] = [
    ({"if": {"type": "null"}}, [None, 1]),
    ({"if": {"type": "null"}, "then": False}, [None, 1]),
    ({"if": True, "then": {"minimum": 1}, "else": {"minimum": 3}}, [0, 2, "a"]),
    ({"if": False, "then": {"minimum": 1}, "else": {"minimum": 3}}, [0, 2, 3, "a"]),
    ({"then": {"minimum": 1}, "else": False}, [0, 1]),
    ({"dependentRequired": {"a": ["b"], "b": ["a"]}}, [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}]),
    ({"dependentRequired": {"a": []}}, [{}, {"a": 1}, 1]),
    ({"dependentSchemas": {"a": False}}, [{}, {"a": 1}, {"b": 1}, 1]),
    ({"dependentSchemas": {"a": {"type": "array"}}}, [{}, {"a": 1}, {"b": 1}, 1]),
    (
        {"dependentRequired": {"a": ["c"], "b": ["c"]}, "properties": {"c": {"type": "null"}}},
        [{}, {"a": 1}, {"a": 1, "c": None}, {"a": 1, "c": 1}, {"b": 1, "c": None}, {"b": 1}],
    ),
    (
        {"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}},
        [{}, {"a": 1}, {"a": 1, "b": 1}, {"c": 1}, {"c": 1, "d": 1}, [], "a"],
    ),
]


@pytest.mark.parametrize("draft", ["draft-04", "draft-07"])
@pytest.mark.parametrize(("schema", "instances"), CASES)
def test_cases(bench: Bench, schema: Any, instances: list[Any], draft: str) -> None:
    old = {"$schema": f"http://json-schema.org/{draft}/schema#", **schema}
    if draft == "draft-07" and not schema.keys() & {"dependentRequired", "dependentSchemas"}:
        check(bench, old, instances)
    if "dependencies" not in schema:
        check(bench, schema, instances)
    elif draft == "draft-04":
        check(bench, old, instances)


@given(
    condition=PLAIN,
    then=st.booleans() | PLAIN,
    otherwise=st.booleans() | PLAIN,
    beside=PLAIN,
    instances=st.lists(INSTANCES, min_size=5, max_size=10),
)
@settings(max_examples=150, deadline=None)
def test_conditions(
    bench: Bench, condition: Any, then: Any, otherwise: Any, beside: Any, instances: list[Any]
) -> None:
    schema = {**beside, "if": condition, "then": then, "else": otherwise}
    if compiles(bench, schema, "unsupported_json_schema"):
        check(bench, schema, instances)


@given(
    names=st.dictionaries(NAMES, st.lists(NAMES, unique=True), min_size=1),
    schemas=st.dictionaries(NAMES, st.booleans() | PLAIN, max_size=2),
    beside=PLAIN,
    instances=st.lists(INSTANCES, min_size=5, max_size=10),
)
@settings(max_examples=150, deadline=None)
def test_dependencies(
    bench: Bench, names: Any, schemas: Any, beside: Any, instances: list[Any]
) -> None:
    schema = {**beside, "dependentRequired": names, "dependentSchemas": schemas}
    if compiles(bench, schema, "unsupported_json_schema"):
        check(bench, schema, instances)


def test_properties_that_ask_for_the_same_are_one_case() -> None:
    asked = {f"p{number}": ["id"] for number in range(500)}
    admit(schema_spec({"type": "object", "dependentRequired": asked}))


def test_the_siblings_of_a_reference_are_ignored_up_to_draft_7(bench: Bench) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": "integer", "not": {"const": 3}}},
        "properties": {"x": {"$ref": "#/definitions/a", "not": {}}},
    }
    check(bench, schema, [{"x": 1}, {"x": 3}, {"x": "a"}, {}])
