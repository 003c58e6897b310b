"""Types of which no value can satisfy a case."""

from __future__ import annotations

import math

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.objects import property_of
from phloem.constrained.json_schema.normalise.values import NUMBERS, Atoms, bounds_of


def impossible(case: Schema, atoms: Atoms) -> Atoms:
    """Those of ``atoms``, the types that ``case`` allows, whose keywords contradict each other."""
    return (
        _impossible_numbers(case, atoms)
        | _impossible_strings(case)
        | _impossible_arrays(case)
        | _impossible_objects(case)
    )


def _impossible_numbers(case: Schema, atoms: Atoms) -> Atoms:
    """`NUMBERS` if there is none: a bound that leaves no integers need not be said as a type."""
    low, high = bounds_of(case)
    strict = "exclusiveMinimum" in case or "exclusiveMaximum" in case
    whole = _integers(case, low, high) if "integer" in atoms else False
    broken = "fraction" in atoms and low < high and not _is_whole(case.get("multipleOf", 0.5))
    single = "fraction" in atoms and low == high and not strict and not _is_whole(low)
    return frozenset() if whole or broken or single else NUMBERS


def _integers(case: Schema, low: float, high: float) -> bool:
    if math.isinf(low) or math.isinf(high):
        return low < high
    least = math.floor(low) + 1 if "exclusiveMinimum" in case else math.ceil(low)
    return least < high if "exclusiveMaximum" in case else least <= high


def _is_whole(number: float) -> bool:
    return number == int(number)


def _impossible_strings(case: Schema) -> Atoms:
    too_short = case.get("minLength", 0) > case.get("maxLength", math.inf)
    contradicts = case.get("pattern") in case.get("not pattern", ()) or case.get(
        "format"
    ) in case.get("not format", ())
    return frozenset({"string"}) if too_short or contradicts else frozenset()


def _impossible_arrays(case: Schema) -> Atoms:
    least = case.get("minItems", 0)
    listed = case.get("prefixItems", ())
    barred = False in listed[:least] or (case.get("items") is False and least > len(listed))
    contradicts = case.get("uniqueItems") and "not uniqueItems" in case
    if barred or contradicts or least > case.get("maxItems", math.inf):
        return frozenset({"array"})
    return frozenset()


def _impossible_objects(case: Schema) -> Atoms:
    required = case.get("required", ())
    most = case.get("maxProperties", math.inf)
    if case.get("additionalProperties") is False and not case.get("patternProperties"):
        named = case.get("properties", {}).values()
        most = min(most, sum(schema is not False for schema in named))
    few = max(len(required), case.get("minProperties", 0)) > most
    barred = few or any(_is_barred(case, name) for name in required)
    return frozenset({"object"}) if barred else frozenset()


def _is_barred(case: Schema, name: str) -> bool:
    try:
        return property_of(case, name) is False
    except GrammarError:  # of a pattern, which is refused in its own place
        return False
