"""``not``: exactly what a schema does not allow, or a refusal that says where."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench, schema_spec
from hypothesis import given, settings
from hypothesis import strategies as st
from logic_schemas import INSTANCES, LOGIC, PLAIN
from normalised import check, compiles, walk

from phloem.constrained import GrammarError

CLOSED = {"additionalProperties": False}
NEGATED: list[tuple[Any, list[Any]]] = [
    ({"type": "string"}, ["a", 1, None, [], {}]),
    ({"type": ["object", "null"]}, [None, {}, {"a": 1}, [], 0.5]),
    ({"type": "integer"}, [1, 0, -3, 0.5, -7.25, "a"]),
    ({"const": "ab"}, ["", "a", "ab", "abc", "b", "Ab", 1]),
    ({"enum": ["a", "ab", "", 1, None, True]}, ["a", "b", "", "abc", 1, 2, 1.5, None, True, False]),
    ({"const": {"a": [1]}}, [{}, {"a": [1]}, {"a": [2]}, {"a": []}, {"a": 1}, {"a": [1], "b": 1}]),
    ({"const": [1, "x"]}, [[1, "x"], [], [1], [1, "y"], [1, "x", 2], {}]),
    ({"minimum": 1}, [0, 0.5, 1, 2, "a"]),
    ({"type": "number", "exclusiveMaximum": 1}, [0, 1, 1.5, "a"]),
    ({"multipleOf": 3}, [0, 1, 3, 4, -3, 2.5, "a"]),
    ({"minLength": 2}, ["", "a", "ab", 1]),
    ({"minLength": 1, "maxLength": 2}, ["", "a", "ab", "abc", 1]),
    ({"pattern": "^a"}, ["", "a", "ab", "ba", "\na", 1]),
    ({"pattern": r"\d"}, ["", "a", "a1", "é"]),
    ({"pattern": "^(foo|bar)$"}, ["foo", "bar", "fo", "foob", ""]),
    ({"required": ["a", "b"]}, [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, 1]),
    ({"properties": {"a": {"type": "null"}}}, [{}, {"a": None}, {"a": 1}, {"b": 1}, 1]),
    (
        {"properties": {"a": {"const": 1}}, "required": ["a"]},
        [{}, {"a": 1}, {"a": 2}, {"b": 1}, 1],
    ),
    ({"properties": {"a": {}}, **CLOSED}, [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, 1]),
    ({"patternProperties": {"^x": False}, "maxProperties": 1}, [{}, {"b": 1}, {"a": 1, "b": 1}]),
    ({"items": False}, [[], [1], {}]),
    ({"items": {"type": "null"}, "maxItems": 2}, [[], [None], [1], [None, 1], [None] * 3]),
    ({"prefixItems": [{"type": "null"}], "minItems": 1}, [[], [None], [1], [None, 1], 1]),
    ({"minItems": 1, "maxItems": 1}, [[], [1], [1, 2], 1]),
    ({"minProperties": 1}, [{}, {"a": 1}, 1]),
    ({"anyOf": [{"type": "null"}, {"minimum": 3}]}, [None, 1, 3, "a"]),
    ({"oneOf": [{"minimum": 3}, {"type": "integer"}]}, [1, 3, 1.5, 3.5, "a"]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{}, {"a": 1}, {"a": 1, "b": 1}]),
    ({"allOf": [{"type": "string"}, {"maxLength": 1}]}, ["", "a", "ab", 1]),
    ({"not": {"type": "null"}}, [None, 1]),
    ({"if": {"type": "null"}, "else": {"minimum": 3}}, [None, 1, 3, "a"]),
    ({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1}, {"a": 1, "b": 1}, 1]),
    ({"dependentSchemas": {"a": {"maxProperties": 1}}}, [{}, {"a": 1}, {"a": 1, "b": 1}]),
    ({"contains": {"const": 1}}, [[], [1], [2], [2, 1], 1]),
    ({"propertyNames": {"maxLength": 1}}, [{}, {"a": 1}, {"ab": 1}]),
]


@pytest.mark.parametrize(("schema", "instances"), NEGATED)
def test_a_negated_keyword(bench: Bench, schema: Any, instances: list[Any]) -> None:
    narrowed = {"propertyNames", "patternProperties"} & schema.keys()
    if not narrowed:
        check(bench, {"not": schema}, instances)
    named: Any = {"properties": dict.fromkeys(["a", "b", "ab", "x"], True), **CLOSED}
    check(bench, {**named, "not": schema}, instances)
    check(bench, {"not": {"not": schema}}, instances)
    walk(bench, {**named, "not": schema}, 0)


@given(schema=PLAIN, instances=st.lists(INSTANCES, min_size=5, max_size=10))
@settings(max_examples=2000, deadline=None)
def test_plain_schemas(bench: Bench, schema: Any, instances: list[Any]) -> None:
    negated = {"not": schema}
    if compiles(bench, negated, "unsupported_json_schema"):
        check(bench, negated, instances)


@given(
    schema=LOGIC,
    definition=st.booleans() | PLAIN,
    instances=st.lists(INSTANCES, min_size=5, max_size=10),
)
@settings(max_examples=4000, deadline=None)
def test_logic(bench: Bench, schema: Any, definition: Any, instances: list[Any]) -> None:
    whole = {**schema, "$defs": {"x": definition}}
    if compiles(bench, whole, "unsupported_json_schema"):
        check(bench, whole, instances)


def test_recursion_is_negated(bench: Bench) -> None:
    tree = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}},
        "required": ["v"],
        **CLOSED,
    }
    schema = {
        "$defs": {"tree": tree},
        "type": "object",
        "properties": {"v": {"type": ["integer", "null"]}, "next": {"type": "object"}},
        "required": ["v"],
        **CLOSED,
        "not": {"$ref": "#/$defs/tree"},
    }
    right = [{"v": None}, {"v": 1, "next": {"v": None}}, {"v": 1, "next": {"next": {}, "v": 1}}]
    wrong = [{"v": 1}, {"v": 1, "next": {"v": 2}}, {"v": 1, "next": {"v": 1, "next": {"v": 0}}}]
    grammar = bench.schema(schema)
    assert all(bench.accepts(grammar, _text(value)) for value in right)
    assert not any(bench.accepts(grammar, _text(value)) for value in wrong)


def _text(value: Any) -> str:
    return schema_spec(value).text


def test_long_lists_of_constants(bench: Bench) -> None:
    words = [f"{prefix}{number}" for prefix in ("", "long " * 20) for number in range(150)]
    grammar = bench.schema({"type": "string", "not": {"enum": words}})
    assert not any(bench.accepts(grammar, _text(word)) for word in words[::7])
    for other in ("", "x", "long", "1500", words[-1] + " ", words[-1][:-4]):
        assert bench.accepts(grammar, _text(other)), other


def test_formats_that_are_ruled_out_leave_few_strings_and_a_warning(bench: Bench) -> None:
    grammar = bench.schema({"type": "string", "not": {"format": "ipv4"}})
    assert bench.accepts(grammar, '"localhost"')
    assert not bench.accepts(grammar, '"127.0.0.1"')
    assert "ipv4" in grammar.warnings[0]
    grammar = bench.schema({"not": {"type": "string", "format": "int32"}})
    assert not bench.accepts(grammar, '"x"')  # an annotation, so every string has the format


REFUSED = [
    ({"not": {"uniqueItems": True, "type": "array"}, "type": "array"}, "#/not/uniqueItems"),
    ({"type": "string", "not": {"pattern": r"(a)\1"}}, "#/not/pattern"),
    ({"type": "string", "not": {"pattern": "(?i)a"}}, "#/not/pattern"),
    ({"type": "string", "not": {"pattern": "(a|b)*a(a|b){12}"}}, "#/not/pattern"),
    ({"items": {"not": {"pattern": r"\bx"}, "type": "string"}}, "#/items/not/pattern"),
    ({"type": "object", "not": {"additionalProperties": {"type": "null"}}}, "#/not"),
]


@pytest.mark.parametrize(("schema", "pointer"), REFUSED)
def test_what_has_no_negation_is_refused(bench: Bench, schema: Any, pointer: str) -> None:
    with pytest.raises(GrammarError) as caught:
        bench.schema(schema)
    assert caught.value.code == "unsupported_json_schema"
    assert caught.value.pointer is not None and pointer.startswith(caught.value.pointer)
    assert caught.value.keyword == caught.value.pointer.split("/")[-1]


def test_nothing_but_the_impossible_is_refused_as_empty(bench: Bench) -> None:
    for schema in ({"not": {}}, {"type": "null", "not": {"const": None}}, {"not": True}):
        with pytest.raises(GrammarError) as caught:
            bench.schema(schema)
        assert caught.value.code == "invalid_grammar"
