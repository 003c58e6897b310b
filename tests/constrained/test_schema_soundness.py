"""Whatever a random model writes under the masks satisfies the schema, by another judge."""

from __future__ import annotations

import random
from typing import Any

import pytest
from constrained_tools import Bench, schema_spec, violations
from grammar_samples import CLOSED, SCHEMAS

from phloem.constrained import GrammarSpec

WALKS = 12


@pytest.mark.filterwarnings("ignore:Possible set intersection:FutureWarning")
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
    ({"exclusiveMinimum": 1, "maximum": 1.5}, "1"),
    ({"allOf": [{"exclusiveMaximum": -1}, {"minimum": -1.5}]}, "-1"),
    ({"anyOf": [{"exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"maximum": -0.5}]}, "0"),
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
    ({"exclusiveMinimum": 1, "maximum": 1.5}, "1.000001"),
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
