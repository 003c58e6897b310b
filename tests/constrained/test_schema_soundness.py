"""Whatever a random model writes under the masks satisfies the schema, by another judge."""

from __future__ import annotations

import random
from typing import Any

import pytest
from constrained_tools import Bench, schema_spec, violations

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

WALKS = 12


@pytest.mark.parametrize("whitespace", ["flexible", "compact"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_walks_satisfy_the_schema(bench: Bench, name: str, whitespace: str) -> None:
    schema = SCHEMAS[name]
    grammar = bench.schema(schema, whitespace=whitespace)
    rng = random.Random(name + whitespace)
    texts = [bench.walk(grammar, rng, steps) for steps in (2, 8, 25) for _ in range(WALKS // 3)]
    finished = [text for text in texts if text is not None]
    assert finished
    for text in finished:
        assert violations(schema, text) == [], text
        assert text == text.strip()


def test_walks_under_json_object_are_objects(bench: Bench) -> None:
    grammar = bench.compiler.compile(GrammarSpec("json_object"))
    rng = random.Random(0)
    finished = [text for _ in range(20) if (text := bench.walk(grammar, rng, 15)) is not None]
    assert finished
    for text in finished:
        assert violations({"type": "object"}, text) == []


UNSOUND_SPELLINGS = [
    ({"properties": {"a": {"type": "integer"}}}, r'{"\u0061": "x"}'),
    ({"required": ["a"], "additionalProperties": {"type": "null"}}, r'{"a": null, "\u0061": 1}'),
    ({"patternProperties": {"^a": False}, "additionalProperties": True}, r'{"\u0061": 1}'),
    ({"properties": {"\n": {"type": "integer"}}}, r'{"\u000a": "x"}'),
    ({"type": "string"}, r'"\ud800"'),
    ({"type": "string"}, r'"\udc00\ud800"'),
    ({"type": "string"}, r'"\/"'),
    ({"type": "string", "maxLength": 1}, r'"\ud83d\ude00\ud83d\ude00"'),
    ({"type": "string", "minLength": 2}, r'"\ud83d\ude00"'),
    ({"type": "string", "pattern": "^x$"}, r'"\u0079"'),
    ({"type": "object"}, ' {"a": 1}'),
    ({"type": "object"}, '{"a": 1} '),
    ({"type": "object"}, "{" + " " * 41 + "}"),
    ({"type": "integer"}, "01"),
    ({"type": "number"}, "1."),
    ({"type": "string", "format": "date"}, '"2023-02-29"'),
    ({"type": "string", "format": "date"}, '"1900-02-29"'),
    ({"type": "string", "format": "time"}, '"22:59:60Z"'),
    ({"const": 2**53}, str(2**53 + 1)),
]


@pytest.mark.parametrize(("schema", "text"), UNSOUND_SPELLINGS)
def test_is_not_written(bench: Bench, schema: Any, text: str) -> None:
    assert not bench.accepts(bench.schema(schema), text)


SOUND_SPELLINGS = [
    ({"type": "string"}, r'"caf\u00e9 \ud83d\ude00 \n"'),
    ({"type": "string", "maxLength": 1}, r'"\ud83d\ude00"'),
    ({"type": "string", "maxLength": 1}, '"😀"'),
    ({"additionalProperties": {"type": "integer"}}, r'{"\u0061": 1}'),
    ({"properties": {"a": {}}, **CLOSED}, r'{"a": "\u00e9"}'),
    ({"properties": {"a": {}}}, '{"a": "é", "z": [1, {}]}'),
    ({"type": "object"}, '{\n    "a": [\n        1,\n        2\n    ]\n}'),
    ({"type": "object"}, '{"a":1}'),
    ({"type": "number"}, "-0.5e+10"),
    ({"type": "string", "format": "date"}, '"2024-02-29"'),
    ({"type": "string", "format": "date-time"}, '"2000-02-29T23:59:59.123+01:00"'),
    ({"type": "string", "format": "hostname"}, '"a-1.example.com"'),
    ({"type": "string", "pattern": "é"}, '"caf\\n é"'),
    ({"minimum": 1}, '"not a number"'),
]


@pytest.mark.parametrize(("schema", "text"), SOUND_SPELLINGS)
def test_may_be_written(bench: Bench, schema: Any, text: str) -> None:
    assert bench.accepts(bench.schema(schema), text)


def test_compact_has_no_white_space(bench: Bench) -> None:
    grammar = bench.schema({"type": "object"}, whitespace="compact")
    assert bench.accepts(grammar, '{"a":[1,"x y"]}')
    assert not bench.accepts(grammar, '{"a": 1}')


def test_special_tokens_are_text_only(bench: Bench) -> None:
    grammar = bench.schema({"type": "string"})
    assert bench.accepts(grammar, '"im_end"')
    matcher = grammar.matcher()
    matcher.accept_many(bench.encode('"x'))
    special = bench.tokenizer.token_to_id("<|im_start|>")
    assert matcher.validate([special]) == 0
    spelled = [bench.tokenizer.token_to_id(char) for char in "<|im_end|>"]
    assert matcher.validate(spelled) == len(spelled)


def test_an_engine_setting_in_the_schema_is_ignored(bench: Bench) -> None:
    schema = {"x-guidance": {"lenient": True, "whitespace_flexible": True}, "type": "object"}
    grammar = bench.compiler.compile(schema_spec(schema, whitespace="compact"))
    assert not bench.accepts(grammar, '{ "a": 1}')
