"""The default model under 20 schemas at temperature 1: every output parses and validates."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from harness import make_core, request, run

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.protocol import Constraint

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PER_SCHEMA = 10


def closed(properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **rest,
    }


SHORT = {"type": "string", "maxLength": 12}
SMALL = {"type": "integer", "minimum": 0, "maximum": 99}
SCHEMAS: list[dict[str, Any]] = [
    closed({"name": SHORT, "age": {"type": "integer", "minimum": 0, "maximum": 150}}),
    closed({"ok": {"type": "boolean"}, "reason": SHORT}),
    {"enum": ["red", "green", "blue", 7, None, {"a": [1, 2]}]},
    {"type": "array", "items": SMALL, "minItems": 2, "maxItems": 4},
    {"type": "integer", "minimum": -5, "maximum": 1000},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.01},
    {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 500},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "minLength": 3, "maxLength": 6},
    {"anyOf": [closed({"kind": {"const": "a"}, "x": {"type": "integer", "maximum": 9}}), SHORT]},
    {
        "oneOf": [
            closed({"kind": {"const": "circle"}, "r": {"type": "integer", "maximum": 99}}),
            closed({"kind": {"const": "square"}, "side": {"type": "integer", "maximum": 99}}),
        ]
    },
    {
        "allOf": [
            closed({"a": {"type": "integer", "minimum": 3, "maximum": 30}}),
            {"required": ["a"]},
        ]
    },
    {
        "$defs": {"point": closed({"x": SMALL, "y": SMALL})},
        "type": "array",
        "items": {"$ref": "#/$defs/point"},
        "minItems": 1,
        "maxItems": 2,
    },
    closed({"tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 3}}),
    closed(
        {
            "nested": closed(
                {
                    "deep": closed(
                        {"value": {"type": ["integer", "null"], "minimum": 0, "maximum": 50}}
                    )
                }
            )
        }
    ),
    {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, SHORT],
        "items": False,
        "minItems": 2,
    },
    {
        "type": "object",
        "properties": {"a": SMALL, "b": SHORT, "c": {"type": "boolean"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "patternProperties": {"^k[0-9]$": {"type": "boolean"}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 2,
    },
    {"type": "string", "format": "ipv4"},
]


def test_there_are_20_schemas() -> None:
    assert len({json.dumps(schema) for schema in SCHEMAS}) == 20


def test_every_generation_satisfies_its_schema(real: LoadedModel) -> None:
    core = make_core(real, kv_tokens=65536, max_running=200)
    prompt = real.tokenizer.encode("Answer with one JSON value that fits the schema:\n")
    batch = {
        schema_id: request(
            prompt,
            n=PER_SCHEMA,
            temperature=1.0,
            seed=schema_id,
            max_new_tokens=200,
            constraint=Constraint(kind="json_schema", text=json.dumps(schema)),
        )
        for schema_id, schema in enumerate(SCHEMAS)
    }
    done = run(core, list(batch.values()))
    checked = 0
    for schema_id, each in batch.items():
        judge = jsonschema.Draft202012Validator(
            SCHEMAS[schema_id], format_checker=jsonschema.FormatChecker()
        )
        for completion in done[each.rid]:
            assert completion.finish is not None
            assert completion.finish.reason == "stop", (SCHEMAS[schema_id], completion.text)
            judge.validate(json.loads(completion.text))
            checked += 1
    assert checked == 200
