"""JSON values and types as the standard compares them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from phloem.constrained import strict_json
from phloem.constrained.json_schema.keywords import Schema, is_number

ATOMS = ("null", "boolean", "integer", "fraction", "string", "array", "object")
"""The types told apart: a number is an ``integer`` if it is whole, else a ``fraction``."""

Atoms = frozenset[str]
ANYTHING: Atoms = frozenset(ATOMS)
NUMBERS: Atoms = frozenset({"integer", "fraction"})


def atoms_of(case: Schema) -> Atoms:
    """What the ``type`` of ``case`` allows; no ``integer`` where multiples of 1 are ruled out."""
    names = case.get("type", ATOMS)
    found = {names} if isinstance(names, str) else set(names)
    if "number" in found:
        found = found - {"number"} | NUMBERS
    if any(divides(divisor, 1) for divisor in case.get("not multipleOf", ())):
        found.discard("integer")
    return frozenset(found)


def typed(case: Schema, atoms: Iterable[str]) -> Schema:
    """``case`` with the ``type`` that allows ``atoms``."""
    found = set(atoms)
    names = ["number" if atom == "fraction" else atom for atom in ATOMS if atom in found]
    if found >= NUMBERS:
        names.remove("integer")
    elif "fraction" in found:
        case = {**case, "not multipleOf": [*case.get("not multipleOf", ()), 1]}
    if found == ANYTHING:
        return {key: value for key, value in case.items() if key != "type"}
    return {**case, "type": names}


def without_type(case: Schema, atom: str) -> Iterator[Schema]:
    """``case`` for the values of all types but ``atom``, if it allows any."""
    others = atoms_of(case) - {atom}
    if others:
        yield typed(case, others)


def atom_of(value: Any) -> str:
    """The type of a value, out of `ATOMS`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if is_number(value):
        return "integer" if value == int(value) else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def bounds_of(case: Schema) -> tuple[float, float]:
    """The least and the largest number between which ``case``, which is tidy, has its numbers."""
    low = case.get("minimum", case.get("exclusiveMinimum"))
    high = case.get("maximum", case.get("exclusiveMaximum"))
    return -math.inf if low is None else low, math.inf if high is None else high


def identity(value: Any) -> Hashable:
    """Equal for values that are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool) or not isinstance(value, list | dict):
        return isinstance(value, bool), value
    if isinstance(value, list):
        return tuple(map(identity, value))
    return frozenset((key, identity(item)) for key, item in value.items())


def same(a: Any, b: Any) -> bool:
    """Whether two schemas are written alike."""
    return a is b or (a == b and strict_json.dumps(a) == strict_json.dumps(b))


def distinct(schemas: Iterable[Any]) -> list[Any]:
    """``schemas`` without those that are written like an earlier one."""
    return list({strict_json.dumps(schema): schema for schema in schemas}.values())


def exact(number: float) -> Decimal:
    """``number`` as it is written in decimal."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def divides(divisor: float, number: float) -> bool:
    """Whether ``number`` is a multiple of ``divisor``, as both are written in decimal."""
    return (Fraction(exact(number)) / Fraction(exact(divisor))).denominator == 1
