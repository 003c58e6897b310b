"""A case without its contradictions: what cannot be is taken out of its types."""

from __future__ import annotations

import math
from typing import Any

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.arrays import LIST_KEYWORDS
from phloem.constrained.json_schema.normalise.impossible import impossible
from phloem.constrained.json_schema.normalise.objects import NAME_KEYWORDS
from phloem.constrained.json_schema.normalise.values import (
    NUMBERS,
    Atoms,
    atom_of,
    atoms_of,
    divides,
    identity,
    same,
    typed,
)

OF_NUMBERS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "not multipleOf",
)
OF_STRINGS = ("minLength", "maxLength", "pattern", "format", "not pattern", "not format")
OF_ARRAYS = (
    "prefixItems",
    "items",
    "minItems",
    "maxItems",
    "counted",
    "uniqueItems",
    "not uniqueItems",
)
OF_OBJECTS = (
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "some property",
)
_TYPES_OF = {
    **dict.fromkeys(OF_NUMBERS, NUMBERS),
    **dict.fromkeys(OF_STRINGS, frozenset({"string"})),
    **dict.fromkeys(OF_ARRAYS, frozenset({"array"})),
    **dict.fromkeys(OF_OBJECTS, frozenset({"object"})),
}


def tidy(case: Schema) -> Schema | None:
    """``case`` in fewer words; None if no value satisfies it."""
    if "enum" in case:
        return _tidy_enum(case)
    case, atoms = _tidy_exclusions(_tidy_numbers(case))
    possible = atoms - impossible(case, atoms)
    if not possible:
        return None
    relevant = {
        key: value for key, value in case.items() if _TYPES_OF.get(key, possible) & possible
    }
    return typed(relevant, possible)


def within(a: Schema, b: Schema) -> bool:
    """Whether ``a`` is seen to allow nothing but what ``b``, another case, allows, too."""
    if "enum" in a or not a.keys() >= b.keys() - {"type"} or not atoms_of(a) <= atoms_of(b):
        return False
    if not set(a.get("required", ())) >= set(b.get("required", ())):
        return False
    mine, yours = a.get("properties", {}), b.get("properties", {})
    if not all(name in mine and same(mine[name], yours[name]) for name in yours):
        return False
    alike = b.keys() - {"type", "required", "properties"}
    if "additionalProperties" in b:
        alike |= NAME_KEYWORDS
    if "items" in b:
        alike |= LIST_KEYWORDS
    return all(same(a.get(key), b.get(key)) for key in alike)


def _tidy_enum(case: Schema) -> Schema | None:
    excluded = {identity(value) for value in case.get("not enum", ())}
    atoms = atoms_of(case)
    values = [
        value
        for value in case["enum"]
        if atom_of(value) in atoms and identity(value) not in excluded and _admits(case, value)
    ]
    if not values:
        return None
    kept = {key: value for key, value in case.items() if key not in ("type", "not enum")}
    kept["enum"] = values
    types = {atom_of(value) for value in values}
    return {
        key: value
        for key, value in kept.items()
        if key not in _DECIDED and _TYPES_OF.get(key, types) & types
    }


def _tidy_exclusions(case: Schema) -> tuple[Schema, Atoms]:
    """``case`` with the values in ``not enum`` that its types, also returned, leave."""
    atoms = atoms_of(case)
    if "not enum" not in case:
        return case, atoms
    values = {identity(value): value for value in case["not enum"] if atom_of(value) in atoms}
    if identity(None) in values:
        atoms -= {"null"}
    if values.keys() >= {identity(True), identity(False)}:
        atoms -= {"boolean"}
    left = [value for value in values.values() if atom_of(value) in atoms]
    rest = {key: value for key, value in case.items() if key != "not enum"}
    return (rest | {"not enum": left} if left else rest), atoms


_DECIDED = frozenset({*OF_NUMBERS, "minLength", "maxLength"})
"""What `_admits` has settled for every value."""


def _admits(case: Schema, value: Any) -> bool:
    """Whether a scalar keeps to `_DECIDED`."""
    if isinstance(value, str):
        least, most = case.get("minLength", 0), case.get("maxLength", math.inf)
        return bool(least <= len(value) <= most)
    if atom_of(value) not in NUMBERS:
        return True
    return (
        case.get("minimum", -math.inf) <= value <= case.get("maximum", math.inf)
        and case.get("exclusiveMinimum", -math.inf) < value
        and value < case.get("exclusiveMaximum", math.inf)
        and ("multipleOf" not in case or divides(case["multipleOf"], value))
        and not any(divides(divisor, value) for divisor in case.get("not multipleOf", ()))
    )


def _tidy_numbers(case: Schema) -> Schema:
    """At most one lower and one upper bound."""
    weaker = set()
    if "minimum" in case and "exclusiveMinimum" in case:
        strict = case["exclusiveMinimum"] >= case["minimum"]
        weaker.add("minimum" if strict else "exclusiveMinimum")
    if "maximum" in case and "exclusiveMaximum" in case:
        strict = case["exclusiveMaximum"] <= case["maximum"]
        weaker.add("maximum" if strict else "exclusiveMaximum")
    return {key: value for key, value in case.items() if key not in weaker} if weaker else case
