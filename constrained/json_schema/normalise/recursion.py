"""Definitions that refer to themselves, which the engine cannot intersect with anything inside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from phloem.constrained.fixpoint import least
from phloem.constrained.json_schema.keywords import Schema
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
    """Whether ``schema`` asks for one of the definitions ``names`` and for something else."""
    if len(schema) == 1 and len(schema.get("allOf", ())) < 2:
        return False
    return any(name in names for name in _in_place(schema))


def _in_place(schema: Schema | bool) -> Iterator[str]:
    """The names of the definitions that apply to the same value as ``schema``."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(DEFINITIONS)
        for keyword in ("allOf", "anyOf"):
            for member in schema.get(keyword, ()):
                yield from _in_place(member)
