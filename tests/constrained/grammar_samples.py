"""Grammars that several tests use: schemas of many kinds, and the shared cases."""

from __future__ import annotations

import json
from typing import Any

from constrained_tools import SHARED

from phloem.constrained import GrammarSpec

CLOSED = {"additionalProperties": False}

SCHEMAS: dict[str, Any] = {
    "any": {},
    "true": True,
    "scalars": {"type": ["string", "integer", "null", "boolean"]},
    "person": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        **CLOSED,
    },
    "open person": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a"],
    },
    "typed extras": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    },
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
    "pattern keys": {
        "type": "object",
        "patternProperties": {"^a": {"type": "integer"}, "^b": {"type": "null"}},
        "additionalProperties": {"type": "string"},
    },
    "named beside pattern": {
        "type": "object",
        "properties": {"score": {"type": "integer", "multipleOf": 5}},
        "patternProperties": {"^s": {"minimum": 10}},
        "required": ["score"],
    },
    "exactly one": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
        "minProperties": 1,
        "maxProperties": 1,
        **CLOSED,
    },
    "required unlisted": {"type": "object", "required": ["x", "y"]},
    "bounded string": {"type": "string", "minLength": 2, "maxLength": 5},
    "bounded pattern": {"type": "string", "pattern": "[ab]+", "minLength": 2, "maxLength": 6},
    "anchored": {"type": "string", "pattern": "^(cat|dog)s?$"},
    "alternation of anchors": {"type": "string", "pattern": "^a|b$", "maxLength": 6},
    "class as written": {"type": "string", "pattern": "^[^a&&b]{1,4}$"},
    "shorthands": {"type": "string", "pattern": r"^\d\w\S\D\W\s$"},
    "ignore case": {"type": "string", "pattern": "(?i)^straße$"},
    "two patterns": {"allOf": [{"pattern": "^[a-f]+$"}, {"pattern": "d"}], "type": "string"},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "null"}, {"const": 1}], "items": False},
    "draft 7 tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "integer"}],
        "anyOf": [{"type": "array"}],
        "additionalItems": False,
    },
    "draft 4 bounds": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 5,
        "enum": [5, 6, "x"],
        "exclusiveMinimum": True,
    },
    "draft 7 siblings of ref": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": "integer"}},
        "properties": {"x": {"$ref": "#/definitions/a", "type": "string"}},
        "required": ["x"],
        "type": "object",
        **CLOSED,
    },
    "numbers": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 2.5},
    "integers": {"type": "integer", "exclusiveMinimum": -20, "maximum": 300, "multipleOf": 7},
    "decimals": {"type": "number", "multipleOf": 0.01, "minimum": 0},
    "past float64": {"type": "integer", "minimum": 2**53 + 1, "maximum": 2**53 + 9},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "intersected divisors": {"allOf": [{"multipleOf": 12}, {"multipleOf": 18}], "type": "integer"},
    "constants": {"enum": [0.1, -0.5, 1e-7, 1.0, -3, "é\n\u0001", [1, {"a": None}], {"b": []}]},
    "inheritance": {
        "$defs": {"base": {"properties": {"x": {"minimum": 10}}, "required": ["x"]}},
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"x": {"type": "integer"}}}],
        "type": "object",
    },
    "tagged union": {
        "oneOf": [
            {"properties": {"k": {"const": "a"}}, "required": ["k"], "type": "object"},
            {"properties": {"k": {"const": "b"}, "n": True}, "required": ["k"], "type": "object"},
        ]
    },
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "v": {"type": "integer"},
                    "c": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["v", "c"],
                **CLOSED,
            }
        },
    },
    "date": {"type": "string", "format": "date"},
    "ipv4": {"type": "string", "format": "ipv4"},
    "ipv6": {"type": "string", "format": "ipv6"},
    "uuid": {"type": "string", "format": "uuid"},
    "email": {"type": "string", "format": "email", "maxLength": 12},
}

_FILE = SHARED / "cases" / "structured.json"
CASES: list[dict[str, Any]] = json.loads(_FILE.read_text()) if _FILE.exists() else []
"""{id, kind, schema_or_regex, accept, reject, expect, ...}; empty where the file is not at hand."""

ANNOTATED = {"format_unknown"}
"""Where a format is an annotation by our choice, so what it would reject may pass, with a word."""


def spec_of(case: dict[str, Any]) -> GrammarSpec:
    """The spec of a shared case."""
    source = case["schema_or_regex"]
    if source == "__DEEP__":
        return GrammarSpec("json_schema", '{"type":"array","items":' * 2_000 + "{}" + "}" * 2_000)
    is_json = case["kind"] in ("json_schema", "choice")
    return GrammarSpec(case["kind"], json.dumps(source) if is_json else source)
