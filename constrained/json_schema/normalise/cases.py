"""``if`` and the dependencies on a property, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phloem.constrained.json_schema.keywords import Schema, is_schema
from phloem.constrained.json_schema.normalise.compose import all_of, any_of, both, negation
from phloem.constrained.json_schema.normalise.workspace import Workspace

_DEPENDENCIES = ("dependencies", "dependentRequired", "dependentSchemas")


def rewrite_if(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` without ``if``, ``then`` and ``else``."""
    rest = _without(schema, ("if", "then", "else"))
    if "if" not in schema or not schema.keys() & {"then", "else"}:
        return rest
    condition = schema["if"]
    yes = both(condition, schema.get("then", True))
    no = both(negation(condition), schema.get("else", True))
    return both(rest, any_of((yes, no)))


def rewrite_dependencies(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` without the keywords that ask for more where a property is present.

    Properties that ask for the same have one case for all of them: none is there.
    """
    rest = _without(schema, _DEPENDENCIES)
    asked: list[tuple[Schema | bool, list[str]]] = []
    for name, needed in _dependencies(schema):
        group = next((names for other, names in asked if other == needed), None)
        if group is None:
            asked.append((needed, [name]))
        else:
            group.append(name)
    return all_of((rest, *(_either(names, needed) for needed, names in asked)))


def _dependencies(schema: Schema) -> Iterator[tuple[str, Schema | bool]]:
    for keyword in _DEPENDENCIES:
        for name, needed in schema.get(keyword, {}).items():
            yield name, needed if is_schema(needed) else {"required": needed}


def _either(names: list[str], needed: Schema | bool) -> Schema | bool:
    """None of ``names`` is there, or what is ``needed`` for them, which is written first."""
    absent: Schema = {"properties": dict.fromkeys(names, False)}
    present: Schema = {"type": "object"}
    if len(names) == 1:
        present["required"] = names
    return any_of((absent, both(needed, present)))


def _without(schema: Schema, keywords: Iterable[str]) -> Schema:
    dropped = set(keywords)
    return {key: value for key, value in schema.items() if key not in dropped}
