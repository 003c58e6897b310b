"""``contains``: how many items of an array satisfy a schema."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.arrays import item
from phloem.constrained.json_schema.normalise.branches import cases
from phloem.constrained.json_schema.normalise.compose import any_of, both, negation
from phloem.constrained.json_schema.normalise.literals import Counted
from phloem.constrained.json_schema.normalise.values import without_type
from phloem.constrained.json_schema.normalise.workspace import Workspace

_MOST_CASES = 64
_FARTHEST = 12
"""Items looked at where an array has no end in sight."""


def rewrite_counted(case: Schema, workspace: Workspace) -> Schema | bool:
    """One case for each choice of the items that count.

    In an array without a small ``maxItems`` these are looked for among the first items alone.
    """
    count, *more = case["counted"]
    rest = {key: value for key, value in case.items() if key != "counted"}
    if more:
        rest["counted"] = more
    if count.schema in (True, {}):
        return both(rest, _sized(count))
    others = list(without_type(rest, "array"))
    if count.schema is False:
        return any_of(others) if count.least else rest
    places = _places(case, count, workspace)
    counts, other = _named(count.schema, workspace), _named(negation(count.schema), workspace)
    shared = count._replace(schema=counts)
    options = [_chosen(shared, other, chosen) for chosen in _choices(count, places)]
    return any_of((*others, *(both(rest, option) for option in options)))


def _sized(count: Counted) -> Schema:
    sized: Schema = {"minItems": count.start + count.least} if count.least else {}
    return sized if count.most is None else {**sized, "maxItems": count.start + count.most}


def _places(case: Schema, count: Counted, workspace: Workspace) -> list[int]:
    """The items that may count, as far as they are looked for."""
    last = count.start + _FARTHEST
    listed = len(case.get("prefixItems", ()))
    possible = {index: _may_count(item(case, index), count, workspace) for index in range(listed)}
    rest = _may_count(item(case, listed), count, workspace)
    end = min(last, case.get("maxItems", math.inf) if rest else max(listed, count.start))
    places = [index for index in range(count.start, int(end)) if possible.get(index, rest)]
    looked_at = len(places)
    while sum(1 for _ in _choices(count, places)) > _MOST_CASES:
        places.pop()
    if len(places) == looked_at and not (rest and end < case.get("maxItems", math.inf)):
        return places
    if len(places) < count.least:
        raise workspace.refuse("contains", "there are too many ways to meet it")
    far = places[-1] + 1 if places else 0
    workspace.warn(
        f"some of what is valid is not generated: the items that count are among the first {far}"
    )
    return places


def _may_count(schema: Schema | bool, count: Counted, workspace: Workspace) -> bool:
    """Whether an item that satisfies ``schema`` may count, as far as is found out."""
    try:
        return bool(cases(both(schema, count.schema), workspace))
    except GrammarError:
        return True  # which is said again if it matters


def _choices(count: Counted, places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The sets of ``places`` that may be those that count."""
    most = count.least if count.most is None else count.most
    for size in range(count.least, min(most, len(places)) + 1):
        yield from combinations(places, size)


def _named(schema: Schema | bool, workspace: Workspace) -> Schema | bool:
    """``schema`` by reference, as it is asked of many items."""
    return workspace.define(schema) if isinstance(schema, dict) else schema


def _chosen(count: Counted, other: Schema | bool, chosen: tuple[int, ...]) -> Schema:
    """The items at ``chosen`` count, and if their number is bounded the rest are ``other``."""
    other = True if count.most is None else other
    length = chosen[-1] + 1 if chosen else count.start
    listed = [
        True if index < count.start else count.schema if index in chosen else other
        for index in range(length)
    ]
    shape: Schema = {"type": ["array"], "items": other}
    if listed:
        shape["prefixItems"] = listed
    return {**shape, "minItems": length} if chosen else shape
