"""``minProperties`` and ``maxProperties`` beside properties that are optional."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import combinations

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import any_of, both
from phloem.constrained.json_schema.normalise.values import without_type
from phloem.constrained.json_schema.normalise.workspace import Workspace

_MOST_CASES = 64
_SIZE = frozenset({"minProperties", "maxProperties"})


def is_sized(schema: Schema, ready: AbstractSet[str] = frozenset()) -> bool:
    """Whether the number of its properties is to be written out case by case."""
    if schema.keys() & {"allOf", "anyOf", "oneOf", "$ref"}:
        return True
    return not _engine_counts(schema) and not is_for_guard(schema)


def is_for_guard(schema: Schema) -> bool:
    """Whether a guard is to count the properties: there are too many cases, and it leads nowhere.

    It must always be possible to go on below the least number, and to end at the most.
    """
    if _SIZE.isdisjoint(schema) or _engine_counts(schema) or _ways(schema) <= _MOST_CASES:
        return False
    ends = "maxProperties" not in schema or not schema.get("required")
    goes_on = "minProperties" not in schema or schema.get("additionalProperties") is not False
    return ends and goes_on and schema.get("maxProperties", 1) > 0


def _engine_counts(schema: Schema) -> bool:
    """Whether the engine can: not where some properties are optional, save in simple cases."""
    if not _optional(schema):
        return True
    least, most = _bounds(schema)
    return (least == 0 and most == math.inf) or (
        least <= 1 and most in (1, math.inf) and _is_closed(schema)
    )


def _bounds(schema: Schema) -> tuple[int, float]:
    """How many properties there must and may be that are not required."""
    required = len(schema.get("required", ()))
    least = max(0, schema.get("minProperties", 0) - required)
    return least, schema.get("maxProperties", math.inf) - required


def _ways(schema: Schema) -> float:
    """How many cases `rewrite_size` makes."""
    number = len(_optional(schema))
    least, most = _bounds(schema)
    if _is_closed(schema):
        allowed = int(max(0, min(most, number)))
        return math.comb(number, allowed) * math.comb(allowed, least)
    largest = least if most == math.inf else int(max(-1, min(most, number)))
    return sum(math.comb(number, size) for size in range(largest + 1))


def rewrite_size(case: Schema, workspace: Workspace) -> Schema | bool:
    """One case for each choice of the optional properties that are there."""
    if "allOf" in case:
        raise workspace.refuse("minProperties", "its properties are described twice")
    if _ways(case) > _MOST_CASES:
        raise workspace.refuse("minProperties", "there are too many ways to meet it")
    rest = {key: value for key, value in case.items() if key not in _SIZE}
    choose = _of_closed if _is_closed(case) else _of_open
    options = choose(_optional(case), *_bounds(case))
    bounds = {key: case[key] for key in _SIZE & case.keys()}
    return any_of(
        (
            *without_type(rest, "object"),
            *(both({**rest, **(bounds if counts else {})}, shape) for shape, counts in options),
        )
    )


Choice = tuple[Schema, bool]
"""What is asked of the optional properties, and whether the bounds are still to be asked for."""


def _of_closed(optional: list[str], least: int, most: float) -> Iterator[Choice]:
    """Just enough properties are required, all but as many as there may be are forbidden."""
    if most < 0:
        return
    allowed = [optional] if most >= len(optional) else combinations(optional, int(most))
    for names in allowed:
        for needed in combinations(names, least):
            yield _presence(needed, [name for name in optional if name not in names]), False


def _of_open(optional: list[str], least: int, most: float) -> Iterator[Choice]:
    """The engine can count the free properties beside those of which it knows that they are there.

    Where there are enough of these, and no upper bound, it need not.
    """
    counted = range(least if most == math.inf else int(min(most, len(optional))) + 1)
    for size in counted:
        for needed in combinations(optional, min(size, len(optional) + 1)):
            yield _presence(needed, [name for name in optional if name not in needed]), True
    if most == math.inf:
        yield from ((_presence(needed, ()), False) for needed in combinations(optional, least))


def _presence(needed: Iterable[str], absent: Iterable[str]) -> Schema:
    shape: Schema = {"type": ["object"], "required": list(needed)}
    forbidden = dict.fromkeys(absent, False)
    return {**shape, "properties": forbidden} if forbidden else shape


def _optional(schema: Schema) -> list[str]:
    required = schema.get("required", ())
    named = schema.get("properties", {}).items()
    return [name for name, child in named if child is not False and name not in required]


def _is_closed(schema: Schema) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")
