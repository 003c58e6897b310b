"""``oneOf``: exactly one branch holds."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench, schema_spec
from hypothesis import given, settings
from hypothesis import strategies as st
from logic_schemas import INSTANCES, PLAIN
from normalised import check, compiles, walk

from phloem.constrained import GrammarError
from phloem.constrained import check as admit
from phloem.constrained.json_schema.normalise import LOGIC
from phloem.constrained.json_schema.normalise.overlap import Overlaps
from phloem.constrained.json_schema.normalise.workspace import Workspace

CLOSED = {"additionalProperties": False}


def tagged(value: Any, **more: Any) -> dict[str, Any]:
    """An object with a tag."""
    properties = {"kind": {"const": value}, **more}
    return {"type": "object", "properties": properties, "required": ["kind"]}


DISJOINT: list[list[Any]] = [
    [{"type": "string"}, {"type": ["integer", "null"]}, {"type": "object"}],
    [{"const": 1}, {"const": True}, {"enum": ["a", 0]}],
    [{"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["c"]}],
    [tagged("a"), tagged("b", x={"type": "null"}), {"type": "array"}],
    [tagged("a"), {"type": "object", "properties": {"kind": False}}],
    [{"type": "object", "required": ["a"]}, {"type": "object", "properties": {"a": False}}],
    [{"type": "object", "required": ["a"]}, {"type": "object", "properties": {"b": {}}, **CLOSED}],
    [{"type": "number", "maximum": 1}, {"type": "number", "exclusiveMinimum": 1}],
    [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}],
    [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}],
    [
        {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1},
        {"type": "array", "prefixItems": [{"const": 2}], "minItems": 1},
    ],
    [
        {"type": "object", "properties": {"p": tagged("a")}, "required": ["p"]},
        {"type": "object", "properties": {"p": tagged("b")}, "required": ["p"]},
    ],
    [
        {"allOf": [tagged("a"), {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}]},
        {"anyOf": [tagged("b"), tagged("c")]},
    ],
    [{"type": "string", "pattern": "^a"}, {"type": "string", "not": {"pattern": "^a"}}],
    [
        {"type": "object", "required": ["$ref"]},
        {"type": "object", "patternProperties": {"^x-": {}}, "properties": {"a": {}}, **CLOSED},
    ],
]


@pytest.mark.parametrize("branches", DISJOINT, ids=range(len(DISJOINT)))
def test_branches_that_exclude_each_other_are_shown_to(branches: list[Any]) -> None:
    overlaps = Overlaps(branches, Workspace(LOGIC))
    assert overlaps.pairs == []
    assert overlaps.possible == list(range(len(branches)))


OVERLAPPING: list[tuple[Any, list[Any]]] = [
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{}, {"a": 1}, {"a": 1, "b": 1}, 1]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2, 3, 1.5, 2.5, "a"]),
    ({"oneOf": [{"type": "string"}, {"enum": ["a", 1]}]}, ["a", "b", 1, 2]),
    ({"oneOf": [{"type": "string"}, {"maxLength": 1}, {"pattern": "^a"}]}, ["", "a", "ab", "b"]),
    ({"oneOf": [{"type": "null"}, {"type": "null"}, {}]}, [None, 1, {}]),
    ({"oneOf": [{}, {}, {}]}, []),
    ({"oneOf": [True, False, False]}, [1, None]),
    ({"oneOf": [{"const": 1}, False]}, [1, 2]),
    (
        {
            "type": "object",
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}],
        },
        [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, {"d": 1}, {}],
    ),
    (
        {
            "oneOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"], **CLOSED},
                {"properties": {"a": {"minimum": 2}, "b": {}}, "required": ["a"], **CLOSED},
            ],
            "type": "object",
        },
        [{"a": 1}, {"a": 2}, {"a": 2.5}, {"a": 2.5, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1}],
    ),
    ({"oneOf": [{"items": {"type": "null"}}, {"maxItems": 1}]}, [[], [1], [None], [None, None]]),
    ({"oneOf": [{"not": {"type": "null"}}, {"type": ["null", "string"]}]}, [None, "a", 1]),
]


@pytest.mark.parametrize(("schema", "instances"), OVERLAPPING)
def test_branches_that_overlap_are_made_to(bench: Bench, schema: Any, instances: list[Any]) -> None:
    if compiles(bench, schema):
        check(bench, schema, instances)
        walk(bench, schema, 1)
    else:
        assert not instances


@given(
    branches=st.lists(st.booleans() | PLAIN, min_size=2, max_size=3),
    beside=st.just({}) | PLAIN,
    instances=st.lists(INSTANCES, min_size=5, max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_branches(bench: Bench, branches: list[Any], beside: Any, instances: list[Any]) -> None:
    schema = {**beside, "oneOf": branches}
    if compiles(bench, schema, "unsupported_json_schema"):
        check(bench, schema, instances)


def test_branches_are_compared_through_references_and_beside_what_surrounds_them(
    bench: Bench,
) -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["kind"],
        "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "$defs": {
            "a": {"properties": {"kind": {"$ref": "#/$defs/tag"}}},
            "b": {"properties": {"kind": {"enum": ["b", "c"]}}, "required": ["n"]},
            "tag": {"const": "a"},
        },
    }
    instances = [{"kind": "a"}, {"kind": "b"}, {"kind": "b", "n": 1}, {"kind": "d"}, {"n": 1}]
    check(bench, schema, instances)
    grammar = bench.schema(schema)
    assert bench.accepts(grammar, '{"kind": "b", "n": 1}')  # in the order of the properties
    assert not bench.accepts(grammar, '{"n": 1, "kind": "b"}')


def test_recursion_through_branches(bench: Bench) -> None:
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"not": {"$ref": "#"}}, "required": ["not"], **CLOSED},
            {"type": "array", "items": {"$ref": "#"}},
            {"type": "integer"},
        ]
    }
    check(bench, schema, [1, [], [1, [2]], {"not": {"not": [1]}}, {"not": "a"}, {"a": 1}, "a"])


def test_many_constants_and_tags_are_quick() -> None:
    constants = [{"const": f"value {number}", "title": str(number)} for number in range(1_500)]
    admit(schema_spec({"oneOf": constants}))
    admit(schema_spec({"oneOf": [tagged(f"tag {number}", x={}) for number in range(300)]}))


def test_too_many_overlaps_are_refused_in_good_time() -> None:
    branches = [
        {"properties": {name: {"minLength": 1} for name in "abcdefgh"}, "required": [str(number)]}
        for number in range(40)
    ]
    with pytest.raises(GrammarError) as caught:
        admit(schema_spec({"properties": {"a/b": {"oneOf": branches}}}))
    assert caught.value.code == "grammar_too_complex"
    assert (caught.value.pointer, caught.value.keyword) == ("#/properties/a~1b/oneOf", "oneOf")
