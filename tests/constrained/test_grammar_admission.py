"""What is refused before compiling, with which words and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from constrained_tools import schema_spec
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from phloem.constrained import GrammarError, GrammarOptions, GrammarSpec, Limits, check
from phloem.constrained.json_schema.keywords import SHAPES


def refusal(spec: GrammarSpec, limits: Limits | None = None) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        check(spec, limits or Limits())
    return caught.value


CLOSED = {"additionalProperties": False}
EIGHT: dict[str, Any] = {key: {} for key in "abcdefgh"}
TUPLES = [{"prefixItems": [{"const": number}]} for number in range(9)]
REPEATED = {"uniqueItems": True}
NOT_REPEATED = {"type": "array", "not": REPEATED}
UNENFORCED = [
    ({"not": {"type": "string", "pattern": r"(a)\1"}, "type": "string"}, "#/not/pattern"),
    ({"if": {"pattern": r"(a)\1"}, "then": {"minimum": 1}, "type": "string"}, "#/if/pattern"),
    ({"contains": {"const": 7}, "minContains": 20}, "#/contains"),
    ({"propertyNames": {"pattern": "(?<!a)"}}, "#/propertyNames/pattern"),
    ({"dependencies": {"a": {"pattern": r"(a)\1"}}}, "#/dependencies/a/pattern"),
    ({"not": {"unevaluatedProperties": False}}, "#/not/unevaluatedProperties"),
    ({"unevaluatedItems": False, "anyOf": TUPLES}, "#/unevaluatedItems"),
    ({"properties": {"a/b~c": {"type": "array", "not": REPEATED}}}, "#/properties/a~1b~0c/not"),
    ({"$ref": "#/$defs/x", "$defs": {"x": NOT_REPEATED}}, "#/$defs/x/not"),
    ({"$ref": "#/components/X", "components": {"X": NOT_REPEATED}}, "#/components/X/not"),
    ({"minProperties": 4, "properties": EIGHT, **CLOSED}, "#/minProperties"),
    ({"const": 2**53 + 1}, "#/const"),
    ({"items": {"minItems": 1e300}}, "#/items/minItems"),
    ({"maxLength": 10**12}, "#/maxLength"),
    ({"enum": [1, [{"x": 1e300}]]}, "#/enum"),
    ({"pattern": "(?=a)b"}, "#/pattern"),
    ({"pattern": r"(a)\1"}, "#/pattern"),
    ({"patternProperties": {"(?<!x)": {}}}, "#/patternProperties/(?<!x)"),
    ({"required": ["a"], "items": {"const": "\u0001"}}, "#/items/const"),
]


@pytest.mark.parametrize(("schema", "pointer"), UNENFORCED)
def test_what_cannot_be_enforced_is_refused_with_its_place(schema: Any, pointer: str) -> None:
    error = refusal(schema_spec(schema))
    assert (error.code, error.pointer) == ("unsupported_json_schema", pointer)
    assert error.keyword is not None and error.keyword in pointer


WITHOUT_EFFECT = [
    {"uniqueItems": False},
    {"propertyNames": {"type": "string"}},
    {"propertyNames": True},
    {"then": {"minimum": 3}},
    {"if": {"minimum": 3}},
    {"not": False},
    {"minContains": 3},
    {"unevaluatedProperties": {}},
    {"dependentRequired": {}},
    {"$dynamicAnchor": "node"},
    {"nullable": True, "discriminator": {"propertyName": "k"}, "x-order": 3},
    {"enum": [{"not": 1, "uniqueItems": True}], "default": {"not": {}}},
    {"properties": {"not": {}, "if": {}, "uniqueItems": {}}},
    {"$defs": {"unused": {"not": {}}}},
    {"$ref": "#x", "$defs": {"x": {"$anchor": "x"}}},
    {"$id": "https://a.example/root", "$ref": "root#/$defs/x", "$defs": {"x": {}}},
    {"maxLength": 2.0, "minItems": 1.0},
    {"additionalItems": False, "prefixItems": [{}]},
    {"multipleOf": 1_000_000, "minimum": -1e18},
]


@pytest.mark.parametrize("schema", WITHOUT_EFFECT)
def test_what_says_nothing_is_admitted(schema: Any) -> None:
    assert check(schema_spec(schema)) == ()


MALFORMED = [
    ({"type": "str"}, "#/type"),
    ({"properties": {"a": {"type": []}}}, "#/properties/a/type"),
    ({"properties": {"d": {"required": True}}}, "#/properties/d/required"),
    ({"required": ["a", "a"]}, "#/required"),
    ({"minLength": -1}, "#/minLength"),
    ({"minLength": "3"}, "#/minLength"),
    ({"maximum": "3"}, "#/maximum"),
    ({"maximum": True}, "#/maximum"),
    ({"exclusiveMaximum": True}, "#/exclusiveMaximum"),
    ({"multipleOf": 0}, "#/multipleOf"),
    ({"anyOf": []}, "#/anyOf"),
    ({"allOf": [3]}, "#/allOf"),
    ({"items": [{}]}, "#/items"),
    ({"items": None}, "#/items"),
    ({"properties": []}, "#/properties"),
    ({"properties": {"a": 1}}, "#/properties"),
    ({"pattern": 1}, "#/pattern"),
    ({"enum": 1}, "#/enum"),
    ({"$ref": 1}, "#/$ref"),
    ({"$ref": "#/$defs/none"}, "#/$ref"),
    ({"$ref": "#nowhere"}, "#/$ref"),
    ({"$ref": "https://example.com/x"}, "#/$ref"),
    ({"$ref": "#/title", "title": "no schema"}, "#/$ref"),
    ({"$ref": "http://[bad"}, "#/$ref"),
    ({"properties": {"if": {}, "a": {"$ref": "#/properties"}}}, "#/properties/a/$ref"),
    ({"anyOf": [{"const": {"format": "x"}}, {"$ref": "#/anyOf/0/const"}]}, "#/anyOf/1/$ref"),
    ({"$id": "http://[bad"}, "#"),
    ({"$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "a"}}}, None),
    ({"$ref": "#"}, "#"),
    ({"allOf": [{"anyOf": [{"$ref": "#"}, {}]}]}, None),
    ({"not": {"$ref": "#"}}, None),
    ({"dependentSchemas": {"a": {"if": {"$ref": "#"}}}}, None),
    ({"$defs": {"x": {"type": "x"}}}, "#/$defs/x/type"),
    ({"$schema": 7}, "#/$schema"),
    ({"$id": []}, "#/$id"),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "id": 1}, "#/id"),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{}]}, "#/prefixItems"),
    ({"items": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "#/items/$schema"),
    (False, "#"),
    ([], "#"),
    ("x", "#"),
    (None, "#"),
]


@pytest.mark.parametrize(("schema", "pointer"), MALFORMED)
def test_malformed_schemas_are_refused_with_the_place(schema: Any, pointer: str | None) -> None:
    error = refusal(schema_spec(schema))
    assert error.code == "invalid_grammar"
    assert pointer is None or error.pointer == pointer


ENDLESS = [
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#"}}}},
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    {"anyOf": [{"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1}]},
]


@pytest.mark.parametrize("schema", ENDLESS)
def test_documents_without_end_are_refused(schema: Any) -> None:
    assert "finite" in refusal(schema_spec(schema)).message


def test_recursion_that_can_end_is_admitted() -> None:
    check(schema_spec({"type": "object", "properties": {"a": {"$ref": "#"}}}))
    check(schema_spec({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]}))


TEXTS = [
    "",
    "{",
    "{'a': 1}",
    '{"a": 1, "a": 2}',
    '{"minimum": NaN}',
    '{"minimum": 1e999}',
    '{"const": "\\ud800"}',
    '{"const": "\\u0000"}',
    '{"type": "null"}\0',
    "\ud800",
    '{"minimum": ' + "9" * 5_000 + "}",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_that_is_no_clean_json_is_refused(text: str) -> None:
    assert refusal(GrammarSpec("json_schema", text)).code == "invalid_grammar"


TOO_LARGE = [
    (schema_spec({"title": "x" * 3_000}), Limits(text_bytes=2_000)),
    (schema_spec({"title": "é" * 1_100}), Limits(text_bytes=2_000)),
    (GrammarSpec("json_schema", '{"items":' * 65 + "{}" + "}" * 65), Limits()),
    (GrammarSpec("json_schema", "[" * 100_000), Limits()),
    (schema_spec({"enum": ["x" * 60, "y" * 60]}), Limits(enum_bytes=100)),
    (schema_spec({"properties": {"a": {}, "b": {}}}), Limits(properties=1)),
    (schema_spec({"pattern": "a" * 11}), Limits(regex_chars=10)),
    (schema_spec({"allOf": [{"pattern": f"a{{{n}}}"} for n in range(20)]}), Limits()),
    (schema_spec({"multipleOf": 999_983}), Limits()),
    (schema_spec({"allOf": [{"multipleOf": 9_973}, {"multipleOf": 9_967}]}), Limits()),
    (GrammarSpec("regex", "a" * 11), Limits(regex_chars=10)),
    (GrammarSpec("regex", "a{11}"), Limits(repeats=10)),
    (GrammarSpec("regex", "(" * 65 + ")" * 65), Limits()),
    (GrammarSpec("ebnf", "root ::= a\na ::= b\nb ::= [x]"), Limits(rules=2)),
    (GrammarSpec("ebnf", "root ::= " + "(" * 65 + '"a"' + ")" * 65), Limits()),
    (GrammarSpec("choice", '["a", "b", "c"]'), Limits(choices=2)),
]


@pytest.mark.parametrize(("spec", "limits"), TOO_LARGE)
def test_what_is_over_a_limit_is_refused(spec: GrammarSpec, limits: Limits) -> None:
    assert refusal(spec, limits).code == "grammar_too_complex"


@pytest.mark.parametrize("text", ["", "{}", '"a"', "[]", '["a", 1]', "[null]", '["\\ud800"]'])
def test_choices_are_an_array_of_strings(text: str) -> None:
    assert refusal(GrammarSpec("choice", text)).code == "invalid_grammar"


def test_unknown_kinds_and_options_are_refused() -> None:
    assert "json_schema" in refusal(GrammarSpec("lark", "start: A")).message
    wide = GrammarOptions(whitespace="wide")
    assert "compact" in refusal(GrammarSpec("json_object", options=wide)).message


def test_unknown_formats_and_dialects_are_warned_of() -> None:
    (warning,) = check(schema_spec({"properties": {"n": {"format": "int32"}}}))
    assert "int32" in warning and "#/properties/n" in warning
    (warning,) = check(schema_spec({"$schema": "https://example.com/mine"}))
    assert "2020-12" in warning
    (warning,) = check(schema_spec({"maximum": 2**64}))
    assert str(2**63 - 1024) in warning


def test_the_key_keeps_the_order_of_keys_and_drops_white_space() -> None:
    spaced = GrammarSpec("json_schema", '{"type": "object",\n "required": ["a"]}')
    dense = GrammarSpec("json_schema", '{"type":"object","required":["a"]}')
    turned = GrammarSpec("json_schema", '{"required":["a"],"type":"object"}')
    assert spaced.key == dense.key != turned.key
    assert dense.key != GrammarSpec("json_schema", dense.text, GrammarOptions("compact")).key
    assert GrammarSpec("regex", " a").key != GrammarSpec("regex", "a").key


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 2.0, "a", "", "string", "object", "^a", "(", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "items", "not"]), inner, max_size=3)
    ),
    max_leaves=6,
)
OLDER = {"additionalItems", "dependencies", "$recursiveRef"}
KEYWORDS = sorted(SHAPES.keys() - OLDER - {"$schema", "$id", "$anchor"})


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=3))
def test_shapes_agree_with_the_meta_schema(schema: dict[str, Any]) -> None:
    """Nothing that the meta-schema refuses is admitted, and no shape is refused without cause."""
    valid = Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)
    try:
        check(schema_spec(schema))
    except GrammarError as error:
        assert not valid or " must be " not in error.message, (schema, error.message)
    else:
        assert valid, schema


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40), st.sampled_from(["json_schema", "regex", "ebnf", "choice"]))
def test_any_text_is_admitted_or_refused(text: str, kind: Any) -> None:
    try:
        check(GrammarSpec(kind, text))
    except GrammarError as error:
        assert error.message
    json.dumps(GrammarSpec(kind, text).key[:2])
