"""The keywords: what their values must look like, where they hold schemas, which are enforced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
Children = Iterable[tuple[tuple[str, ...], Any]]
"""Subschemas of one keyword's value, each with the steps that lead to it."""

TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What a keyword's value must be, in words and as a test, and the schemas inside it."""

    expects: str
    fits: Callable[[Any], bool]
    children: Callable[[Any], Children] = lambda value: ()


def is_schema(value: Any) -> bool:
    """Whether ``value`` has the form of a schema."""
    return isinstance(value, dict | bool)


def is_number(value: Any) -> bool:
    """Whether ``value`` is a JSON number (a Python bool is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _is_type(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return bool(names) and _is_names(names) and TYPES.issuperset(names)


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_schema, value))


def _is_schema_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_schema, value.values()))


def _is_dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_schema(item) or _is_names(item) for item in value.values()
    )


def _is_name_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


def _listed(value: list[Any]) -> Children:
    return [((str(index),), item) for index, item in enumerate(value)]


def _mapped(value: Schema) -> Children:
    return [((name,), item) for name, item in value.items() if is_schema(item)]


def _one_or_listed(value: Any) -> Children:
    return _listed(value) if isinstance(value, list) else [((), value)]


_SCHEMA = Shape("a schema (an object, true or false)", is_schema, lambda value: [((), value)])
_SCHEMAS = Shape("a non-empty array of schemas", _is_schemas, _listed)
_SCHEMA_MAP = Shape("an object of schemas", _is_schema_map, _mapped)
_ITEMS = Shape(
    "a schema, or before 2020-12 an array of schemas",
    lambda value: is_schema(value) or _is_schemas(value),
    _one_or_listed,
)
_DEPENDENCIES = Shape("an object of schemas or of arrays of names", _is_dependencies, _mapped)
_NAME_LISTS = Shape("an object of arrays of distinct strings", _is_name_lists)
_NAMES = Shape("an array of distinct strings", _is_names)
_COUNT = Shape("a whole number, 0 or more", _is_count)
_NUMBER = Shape("a number", is_number)
_BOUND = Shape(
    "a number (draft 4: a boolean)", lambda value: is_number(value) or isinstance(value, bool)
)
_STRING = Shape("a string", lambda value: isinstance(value, str))
_BOOLEAN = Shape("true or false", lambda value: isinstance(value, bool))
_ARRAY = Shape("an array", lambda value: isinstance(value, list))
_TYPE = Shape(f"one of {', '.join(sorted(TYPES))}, or an array of them", _is_type)
_POSITIVE = Shape("a number above 0", lambda value: is_number(value) and value > 0)
_ANY = Shape("any value", lambda value: True)

ENFORCED: Mapping[str, Shape] = {
    "$ref": _STRING,
    "type": _TYPE,
    "enum": _ARRAY,
    "const": _ANY,
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "properties": _SCHEMA_MAP,
    "patternProperties": _SCHEMA_MAP,
    "additionalProperties": _SCHEMA,
    "required": _NAMES,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "prefixItems": _SCHEMAS,
    "items": _ITEMS,
    "additionalItems": _SCHEMA,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _STRING,
    "format": _STRING,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _BOUND,
    "exclusiveMaximum": _BOUND,
    "multipleOf": _POSITIVE,
}
"""Keywords that the engine enforces."""

REFUSED: Mapping[str, Shape] = {
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "propertyNames": _SCHEMA,
    "dependencies": _DEPENDENCIES,
    "dependentRequired": _NAME_LISTS,
    "dependentSchemas": _SCHEMA_MAP,
    "unevaluatedItems": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "$dynamicRef": _STRING,
    "$recursiveRef": _STRING,
}
"""Keywords that would be ignored by the engine, so they are refused unless they say nothing."""

GUARDED: Mapping[str, Shape] = {"uniqueItems": _BOOLEAN}
"""Keywords that are enforced along the text, by a guard around the engine."""

APPLICATORS: Mapping[str, Shape] = {**ENFORCED, **REFUSED, **GUARDED}
"""Keywords that take part in validation."""

SHAPES: Mapping[str, Shape] = {
    **APPLICATORS,
    "$defs": _SCHEMA_MAP,
    "definitions": _SCHEMA_MAP,
    "$id": _STRING,
    "$anchor": _STRING,
    "$schema": _STRING,
}
"""Every keyword whose value is looked at; all others are annotations."""

IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords whose subschemas apply to the same value as the schema that holds them."""


def says_nothing(keyword: str, schema: Schema) -> bool:
    """Whether a `REFUSED` keyword of ``schema`` allows every value, so that it can be dropped."""
    value = schema[keyword]
    match keyword:
        case "not":
            return value is False
        case "if":
            return "then" not in schema and "else" not in schema
        case "then" | "else":
            return "if" not in schema
        case "minContains" | "maxContains":
            return "contains" not in schema
        case "uniqueItems":
            return value is False
        case "propertyNames":
            return value in (True, {}, {"type": "string"})
        case "unevaluatedItems" | "unevaluatedProperties":
            return value in (True, {})
        case "dependencies" | "dependentRequired" | "dependentSchemas":
            return not value
        case _:
            return False
