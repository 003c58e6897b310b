"""What a case rules out, said in what it allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import all_of, any_of, both
from phloem.constrained.json_schema.normalise.values import (
    NUMBERS,
    atom_of,
    atoms_of,
    bounds_of,
    exact,
    typed,
)
from phloem.constrained.json_schema.normalise.workspace import Workspace
from phloem.constrained.regex.complement import none_of
from phloem.constrained.regex.literals import none_of_literals

_MOST_MULTIPLES = 40


def rewrite_not_enum(case: Schema, workspace: Workspace) -> Schema | bool:
    """One case for each type that loses values, and one for the others."""
    rest, ruled_out = _split(case, "not enum")
    atoms = atoms_of(case)
    options: list[Schema | bool] = []
    untouched = atoms
    for types, exclude in _EXCLUDE:
        values = [value for value in ruled_out if atom_of(value) in types]
        if values:
            untouched -= types
            some = typed(rest, atoms & types)
            options += (both(some, option) for option in exclude(values, workspace))
    return any_of(options if not untouched else (typed(rest, untouched), *options))


def _other_booleans(values: Sequence[Any], workspace: Workspace) -> Iterator[Schema | bool]:
    yield {"enum": [value for value in (True, False) if value not in values]}


def _other_numbers(values: Sequence[Any], workspace: Workspace) -> Iterator[Schema | bool]:
    found = sorted(set(values))
    yield {"exclusiveMaximum": found[0]}
    for low, high in pairwise(found):
        yield {"exclusiveMinimum": low, "exclusiveMaximum": high}
    yield {"exclusiveMinimum": found[-1]}


def _other_strings(values: Sequence[Any], workspace: Workspace) -> Iterator[Schema | bool]:
    yield _ready(none_of_literals(values), workspace)


def _other_structures(values: Sequence[Any], workspace: Workspace) -> Iterator[Schema | bool]:
    yield all_of({"not": _written_out(value)} for value in values)


_EXCLUDE = (
    (frozenset({"boolean"}), _other_booleans),
    (NUMBERS, _other_numbers),
    (frozenset({"string"}), _other_strings),
    (frozenset({"array"}), _other_structures),
    (frozenset({"object"}), _other_structures),
)


def _written_out(value: Any) -> Schema:
    """A constant as a schema in other keywords, one level of it."""
    if isinstance(value, list):
        listed = [{"const": item} for item in value]
        size: Schema = {"type": "array", "minItems": len(value), "maxItems": len(value)}
        return {**size, "prefixItems": listed} if listed else size
    return {
        "type": "object",
        "properties": {name: {"const": item} for name, item in value.items()},
        "required": list(value),
        "additionalProperties": False,
    }


def rewrite_not_pattern(case: Schema, workspace: Workspace) -> Schema | bool:
    """The complement of the regexes as another."""
    rest, ruled_out = _split(case, "not pattern")
    try:
        regex = none_of(tuple(ruled_out))
    except GrammarError as error:
        reason = f"the texts that do not match cannot be described: {error.message}"
        raise workspace.indescribable("pattern", reason) from None
    return both(rest, _ready(regex, workspace)) if regex else False


def _ready(regex: str, workspace: Workspace) -> Schema:
    workspace.ready.add(regex)
    return {"pattern": regex}


def rewrite_not_format(case: Schema, workspace: Workspace) -> Schema | bool:
    """Strings without what each text of the format holds: not all, but surely none of it."""
    rest, ruled_out = _split(case, "not format")
    if not ruled_out:
        return rest
    workspace.warn(f"most strings not of the format {ruled_out[0]!r} are not generated")
    others = [{"not format": ruled_out[1:]}] if ruled_out[1:] else []
    return all_of((rest, {"pattern": _NOT_OF_FORMAT[ruled_out[0]]}, *others))


_NOT_OF_FORMAT = {
    "date": "^[^-]*$",
    "time": "^[^:]*$",
    "date-time": "^[^:]*$",
    "duration": "^[^P]*$",
    "email": "^[^@]*$",
    "hostname": "^$| ",
    "ipv4": "^[^.]*$",
    "ipv6": "^[^:]*$",
    "uuid": "^[^-]*$",
    "uri": "^[^:]*$",
}


def rewrite_not_unique(case: Schema, workspace: Workspace) -> Schema | bool:
    """Refused: the engine cannot make sure of two equal items."""
    raise workspace.indescribable(
        "uniqueItems", "arrays that hold an item twice cannot be described"
    )


def rewrite_not_multiple(case: Schema, workspace: Workspace) -> Schema | bool:
    """The multiples ruled out one by one, near zero or the bounds; beyond, no number is left."""
    rest, divisors = _split(case, "not multipleOf")
    if len(atoms_of(case) - NUMBERS) > 0:
        numbers = typed(rest, atoms_of(rest) & NUMBERS) | {"not multipleOf": divisors}
        return any_of((typed(rest, atoms_of(rest) - NUMBERS), numbers))
    least, *others = sorted(map(exact, divisors))
    low, high = _window(case, least * _MOST_MULTIPLES, workspace)
    multiples = [
        _plain(count * divisor)
        for divisor in (least, *others)
        for count in range(math.ceil(low / divisor), math.floor(high / divisor) + 1)
    ]
    window = {"minimum": _plain(low), "maximum": _plain(high)}
    return both(rest, {**window, "not enum": multiples} if multiples else window)


def _window(case: Schema, width: Decimal, workspace: Workspace) -> tuple[Decimal, Decimal]:
    """Bounds within those of ``case``, at most ``width`` from each other."""
    low, high = map(exact, bounds_of(case))
    if high - low <= width:
        return low, high
    if low > -width / 2:
        found = low, low + width
    elif high < width / 2:
        found = high - width, high
    else:
        found = -width / 2, width / 2
    low, high = found
    workspace.warn(f"numbers below {low} or above {high} that are no multiples are not generated")
    return found


def _plain(number: Any) -> float:
    return int(number) if number == int(number) else float(number)


def _split(case: Schema, keyword: str) -> tuple[Schema, list[Any]]:
    rest = {key: value for key, value in case.items() if key != keyword}
    return rest, case[keyword]
