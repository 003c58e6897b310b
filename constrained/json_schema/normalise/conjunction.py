"""Two cases that both must hold, as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.arrays import LIST_KEYWORDS, both_arrays
from phloem.constrained.json_schema.normalise.objects import NAME_KEYWORDS, both_objects
from phloem.constrained.json_schema.normalise.tidy import tidy
from phloem.constrained.json_schema.normalise.values import (
    atoms_of,
    distinct,
    identity,
    same,
)
from phloem.constrained.json_schema.normalise.workspace import Workspace


def conjoin(a: Schema, b: Schema, workspace: Workspace) -> Schema | None:
    """The case that holds where ``a`` and ``b`` do, None if nowhere.

    What cannot be merged stands in its ``allOf``.
    """
    workspace.spend(_weight(a) + _weight(b))
    merged: Schema = {**a, **{key: value for key, value in b.items() if key not in a}}
    apart: list[Schema] = []
    for group, join in ((NAME_KEYWORDS, both_objects), (LIST_KEYWORDS, both_arrays)):
        if a.keys() & group and b.keys() & group:
            joined = join(a, b, workspace)
            if joined is None:
                joined = {key: a[key] for key in a if key in group}
                apart.append({key: b[key] for key in b if key in group})
            merged = {key: value for key, value in merged.items() if key not in group} | joined
    for key in a.keys() & b.keys() - NAME_KEYWORDS - LIST_KEYWORDS:
        if not same(a[key], b[key]):
            value = MERGES[key](a[key], b[key]) if key in MERGES else None
            if value is None:
                apart.append({key: b[key]})
            else:
                merged[key] = value
    if apart:
        merged["allOf"] = distinct([*merged.get("allOf", ()), *apart])
    return tidy(merged)


_OVERHEAD = 6


def _weight(case: Schema) -> int:
    listed = ("properties", "enum", "not enum")
    return _OVERHEAD + len(case) + sum(len(case[keyword]) for keyword in listed if keyword in case)


def _types(a: Any, b: Any) -> list[str]:
    return sorted(atoms_of({"type": a}) & atoms_of({"type": b}))


def _values(a: list[Any], b: list[Any]) -> list[Any]:
    kept = set(map(identity, b))
    return [value for value in a if identity(value) in kept]


def _listed(a: list[Any], b: list[Any]) -> list[Any]:
    return distinct([*a, *b])


def _divisor(a: float, b: float) -> int | None:
    whole = isinstance(a, int) and isinstance(b, int)
    return math.lcm(int(a), int(b)) if whole else None


MERGES: Mapping[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "enum": _values,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "multipleOf": _divisor,
    "uniqueItems": lambda a, b: a or b,
    "propertyNames": lambda a, b: {"allOf": [a, b]},
    **dict.fromkeys(("required", "allOf", "counted", "some property"), _listed),
    **dict.fromkeys(("not enum", "not pattern", "not format", "not multipleOf"), _listed),
    "not uniqueItems": _listed,
}
"""The one value for two values of a keyword, or None where there is none."""
