"""Definitions that refer to themselves, which the engine cannot intersect with anything inside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from phloem.constrained.fixpoint import least
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.branches import IN_PLACE
from phloem.constrained.json_schema.normalise.children import children
from phloem.constrained.json_schema.normalise.workspace import DEFINITIONS


def references(schema: Schema | bool) -> Iterator[str]:
    """The names of the definitions that ``schema`` refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(DEFINITIONS)
        for child in children(schema):
            yield from references(child)


def recursive(definitions: Mapping[str, Schema | bool]) -> AbstractSet[str]:
    """The names of definitions that lead to themselves, and of those between two such."""
    leads_to = {name: list(references(schema)) for name, schema in definitions.items()}
    comes_from: defaultdict[str, list[str]] = defaultdict(list)
    for name, others in leads_to.items():
        for other in others:
            comes_from[other].append(name)
    return (
        definitions.keys()
        - _ending(leads_to)
        - _ending({name: comes_from[name] for name in definitions})
    )


def _ending(graph: Mapping[str, list[str]]) -> AbstractSet[str]:
    """The nodes from which every path ends."""
    return least(graph, lambda name, known: all(other in known for other in graph[name]))


def is_met(schema: Schema, names: AbstractSet[str]) -> bool:
    """Whether ``schema`` asks for one of the definitions ``names`` and for something else.

    It may do so of the same value, or of those inside it.
    """
    parts = list(_parts(schema))
    if len(parts) < 2:
        return False
    if any(name in names for part in parts for name in _in_place(part)):
        return True
    return sum(any(name in names for name in references(part)) for part in parts) > 1


def _parts(schema: Schema) -> Iterator[Schema | bool]:
    """The schemas that ``schema`` is the conjunction of."""
    plain = {key: value for key, value in schema.items() if key not in IN_PLACE}
    if plain:
        yield plain
    yield from schema.get("allOf", ())
    for keyword in schema.keys() & {"$ref", "anyOf"}:
        yield {keyword: schema[keyword]}


def _in_place(schema: Schema | bool) -> Iterator[str]:
    """The names of the definitions that apply to the same value as ``schema``."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(DEFINITIONS)
        for keyword in ("allOf", "anyOf"):
            for member in schema.get(keyword, ()):
                yield from _in_place(member)
