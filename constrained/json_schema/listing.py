"""Schemas that few values satisfy, by listing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.positions import Position

MOST = 1_024
_DEEPEST = 8

Values = Sequence[Any]


class Listing:
    """Lists the values of a document's schemas: all that satisfy one, and maybe some more."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self._targets: Mapping[int, Any] = {
            id(position.schema): position.target for position in positions
        }

    def values(self, schema: Any, depth: int = 0) -> Values | None:
        """At most `MOST` values; None where more satisfy ``schema``, or where that is unclear."""
        if schema is False:
            return []
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        known = [values for values in self._bounds(schema, depth) if values is not None]
        return min(known, key=len, default=None)

    def _bounds(self, schema: Schema, depth: int) -> Iterator[Values | None]:
        """Values out of which those of ``schema`` are, by each of its keywords."""
        if "const" in schema:
            yield [schema["const"]]
        if "enum" in schema:
            yield schema["enum"]
        yield self._typed(schema, depth)
        yield self.values(self._targets.get(id(schema)), depth + 1)
        for branch in schema.get("allOf", ()):
            yield self.values(branch, depth + 1)
        for keyword in schema.keys() & {"anyOf", "oneOf"}:
            yield _joined(self.values(branch, depth + 1) for branch in schema[keyword])

    def _typed(self, schema: Schema, depth: int) -> Values | None:
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        return _joined(self._of_type(name, schema, depth) for name in names)

    def _of_type(self, name: Any, schema: Schema, depth: int) -> Values | None:
        match name:
            case "null":
                return [None]
            case "boolean":
                return [True, False]
            case "integer":
                return _integers(schema)
            case "object":
                return self._objects(schema, depth)
            case _:
                return None

    def _objects(self, schema: Schema, depth: int) -> Values | None:
        properties = schema.get("properties", {})
        fixed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        if not fixed or set(schema.get("required", ())) != set(properties):
            return None
        members = [self.values(child, depth + 1) for child in properties.values()]
        known = [values for values in members if values is not None]
        if len(known) < len(members) or prod(map(len, known)) > MOST:
            return None
        return [dict(zip(properties, values, strict=True)) for values in product(*known)]


def _joined(parts: Iterable[Values | None]) -> Values | None:
    joined: list[Any] = []
    for values in parts:
        if values is None or len(joined) + len(values) > MOST:
            return None
        joined += values
    return joined


def _integers(schema: Schema) -> Values | None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None or high is None or high - low >= MOST:
        return None
    return range(int(low), int(high) + 1)
