"""The schemas directly inside a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from phloem.constrained.json_schema.keywords import Schema, is_schema

LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies")
SINGLES = (
    "not",
    "if",
    "then",
    "else",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)


def map_children(schema: Schema, function: Callable[[Schema | bool], Schema | bool]) -> Schema:
    """``schema`` with ``function`` of each schema in it."""
    return {key: _mapped(key, value, function) for key, value in schema.items()}


def children(schema: Schema) -> Iterator[Schema | bool]:
    """Every schema directly inside ``schema``."""
    found: list[Schema | bool] = []

    def note(child: Schema | bool) -> Schema | bool:
        found.append(child)
        return child

    map_children(schema, note)
    yield from found


def refers(schema: Schema | bool) -> bool:
    """Whether there is a ``$ref`` anywhere in ``schema``."""
    return isinstance(schema, dict) and ("$ref" in schema or any(map(refers, children(schema))))


def _mapped(key: str, value: Any, function: Callable[[Any], Any]) -> Any:
    if key in SINGLES:
        return [function(item) for item in value] if isinstance(value, list) else function(value)
    if key in LISTS:
        return [function(item) for item in value]
    if key in MAPS:
        return {name: function(item) if is_schema(item) else item for name, item in value.items()}
    return value
