"""Schemas that refer to themselves without end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from phloem.constrained.errors import GrammarError
from phloem.constrained.fixpoint import least
from phloem.constrained.json_schema.keywords import IN_PLACE, Schema
from phloem.constrained.json_schema.positions import Position


def check_loops(positions: Sequence[Position]) -> None:
    """Refuse a schema that applies to a value only if it applies to that value.

    Such a loop, through ``$ref`` and in-place keywords alone, consumes nothing and never ends.
    """
    edges = {id(position.schema): _in_place(position) for position in positions}
    done: set[int] = set()
    for position in positions:
        path: set[int] = set()
        stack: list[tuple[Schema, bool]] = [(position.schema, False)]
        while stack:
            schema, leaving = stack.pop()
            if leaving:
                path.discard(id(schema))
                done.add(id(schema))
            elif id(schema) in path:
                raise GrammarError(
                    f"the $ref at {position.pointer} is part of a loop that consumes nothing",
                    pointer=position.pointer,
                    keyword="$ref",
                )
            elif id(schema) not in done:
                path.add(id(schema))
                stack.append((schema, True))
                stack.extend((child, False) for child in edges[id(schema)])


def _in_place(position: Position) -> list[Schema]:
    schema = position.schema
    inner = [child for keyword in IN_PLACE for child in schema.get(keyword, ())]
    inner += (schema.get(keyword) for keyword in ("not", "if", "then", "else"))
    for keyword in ("dependentSchemas", "dependencies"):
        inner += schema.get(keyword, {}).values()
    return [child for child in (*inner, position.target) if isinstance(child, dict)]


def check_finite(positions: Sequence[Position]) -> None:
    """Refuse a schema that only endless documents satisfy, such as an object that requires itself.

    A schema is finite once all that its documents surely contain is.
    """
    needs = {id(position.schema): list(_needs(position)) for position in positions}
    finite = least(
        {key: [id(schema) for needed in needs[key] for schema in needed] for key in needs},
        lambda key, known: all(_any_finite(needed, known) for needed in needs[key]),
    )
    if id(positions[0].schema) not in finite:
        raise GrammarError("no finite document satisfies this schema: it contains itself")


Alternatives = list[Any]
"""Schemas of which one must be finite."""


def _any_finite(alternatives: Alternatives, known: AbstractSet[int]) -> bool:
    return any(isinstance(schema, bool) or id(schema) in known for schema in alternatives)


def _needs(position: Position) -> Iterator[Alternatives]:
    schema = position.schema
    if position.target is not None:
        yield [position.target]
    for branch in schema.get("allOf", ()):
        yield [branch]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            yield schema[keyword]
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        yield from ([properties[name]] for name in schema.get("required", ()) if name in properties)
    if schema.get("type") == "array" and schema.get("minItems", 0) > 0:
        yield from ([item] for item in _first_items(schema))


def _first_items(schema: Schema) -> list[Any]:
    """The schemas of the items that `minItems` makes sure of, where they are written out."""
    items = schema.get("items", True)
    if isinstance(items, list):
        return items[: schema["minItems"]]
    listed = schema.get("prefixItems", [])
    rest = [items] if schema["minItems"] > len(listed) else []
    return [*listed[: schema["minItems"]], *rest]
