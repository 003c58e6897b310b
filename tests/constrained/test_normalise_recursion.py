"""Definitions that meet something else inside themselves."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench
from normalised import check, walk

CLOSED = {"additionalProperties": False}
RECURSIVE: list[tuple[Any, list[Any]]] = [
    (
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "v": {"type": "integer"},
                        "next": {"$ref": "#/$defs/node", "required": ["v"]},
                    },
                    **CLOSED,
                }
            },
        },
        [{}, {"v": 1, "next": {"v": 1}}, {"next": {}}, {"next": {"v": 1, "next": {}}}],
    ),
    (
        {
            "type": "array",
            "items": {"allOf": [{"$ref": "#"}, {"minItems": 1}, {"maxItems": 2}]},
            "maxItems": 3,
        },
        [[], [[]], [[[[1]]]], [1]],
    ),
    (
        {
            "anyOf": [
                {"type": "integer"},
                {"type": "array", "items": {"$ref": "#", "minimum": 2}},
            ]
        },
        [1, [1], [2], [[2], 3], [[1]], "a"],
    ),
    (
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
            "$defs": {
                "a": {"properties": {"x": {"$ref": "#/$defs/a"}, "n": {"minimum": 1}}},
                "b": {"properties": {"x": {"$ref": "#/$defs/b"}, "n": {"type": "integer"}}},
            },
        },
        [{"n": 1}, {"n": 0}, {"n": 1.5}, {"x": {"x": {"n": 0}}}, {"x": {"x": {"n": 2}}}, 1],
    ),
]


@pytest.mark.parametrize(("schema", "instances"), RECURSIVE)
def test_a_definition_meets_more_inside_itself(
    bench: Bench, schema: Any, instances: list[Any]
) -> None:
    check(bench, schema, instances)
    walk(bench, schema, 5)
