"""What does not satisfy a schema, as a schema.

A schema is a conjunction of its keywords, so its negation is the union of their violations, each
for values of the types that the keyword speaks of. Schemas inside are negated when their turn
comes: here they become ``{"not": ...}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from phloem.constrained.json_schema.keywords import Schema, is_schema
from phloem.constrained.json_schema.normalise.branches import plain_case
from phloem.constrained.json_schema.normalise.compose import all_of, any_of, both, negation
from phloem.constrained.json_schema.normalise.overlap import Overlaps
from phloem.constrained.json_schema.normalise.violations import VIOLATIONS, Violations
from phloem.constrained.json_schema.normalise.workspace import Workspace


def rewrite_not(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` without its ``not``."""
    rest = {key: value for key, value in schema.items() if key != "not"}
    with workspace.at(schema["not"]):
        return both(rest, negate(schema["not"], workspace))


def negate(schema: Schema | bool, workspace: Workspace) -> Schema | bool:
    """A schema for exactly the values that ``schema`` does not allow.

    Raises:
        GrammarError: a keyword's violation cannot be said.
    """
    if isinstance(schema, bool):
        return not schema
    case = plain_case({key: value for key, value in schema.items() if key not in _APART})
    if case is None:
        return True
    found = [part for key in schema if key in IN_PLACE for part in IN_PLACE[key](schema)]
    if "$ref" in schema:
        found.append(negation(workspace.target(schema["$ref"])))
    if "oneOf" in schema:
        found += _not_one(schema["oneOf"], workspace)
    for keyword in case:
        if keyword not in VIOLATIONS:
            raise workspace.refuse(keyword, f"{keyword!r} inside it cannot be negated")
        found += VIOLATIONS[keyword](case)
    return any_of(found)


def _not_all(schema: Schema) -> Violations:
    yield from map(negation, schema["allOf"])


def _not_any(schema: Schema) -> Violations:
    yield all_of(map(negation, schema["anyOf"]))


def _not_one(branches: Sequence[Schema | bool], workspace: Workspace) -> Violations:
    yield all_of(map(negation, branches))
    for i, j in Overlaps(branches, workspace).pairs:
        yield both(branches[i], branches[j])


def _not_not(schema: Schema) -> Violations:
    yield schema["not"]


def _not_if(schema: Schema) -> Violations:
    yield both(schema["if"], negation(schema.get("then", True)))
    yield both(negation(schema["if"]), negation(schema.get("else", True)))


def _not_dependent(keyword: str) -> Callable[[Schema], Violations]:
    def violations(schema: Schema) -> Violations:
        for name, needed in schema[keyword].items():
            parts = [needed] if is_schema(needed) else [{"required": [one]} for one in needed]
            for part in parts:
                yield both({"type": "object", "required": [name]}, negation(part))

    return violations


IN_PLACE: Mapping[str, Callable[[Schema], Violations]] = {
    "allOf": _not_all,
    "anyOf": _not_any,
    "not": _not_not,
    "if": _not_if,
    "then": lambda schema: iter(()),
    "else": lambda schema: iter(()),
    "dependencies": _not_dependent("dependencies"),
    "dependentRequired": _not_dependent("dependentRequired"),
    "dependentSchemas": _not_dependent("dependentSchemas"),
}
"""How a keyword for schemas that apply to the same value is violated."""

_APART = IN_PLACE.keys() | {"$ref", "oneOf"}
