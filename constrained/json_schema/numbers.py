"""Numbers that the engine, which computes in float64 and int64, would get wrong.

Beyond 2^53 a bound would be rounded, perhaps to the wrong side, and a constant to another number;
near 2^63 the engine overflows its stack. Bounds are narrowed to the nearest value that is exact,
which allows a little less and nothing wrong; constants are refused.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema, is_number
from phloem.constrained.json_schema.positions import Position
from phloem.constrained.strict_json import pointer_to

EXACT = 2**53
LARGEST = 2**63 - 1024
"""The largest float64 that an int64 holds."""

_LARGEST_COUNT = 2**31 - 1
_MOST_REMAINDERS = 4_096
"""About 10 us each to compile; beyond, the engine may run out of states while decoding."""

_GAP = 1e-12
"""Relative to a number, or absolute below 1: what `part_bounds` leaves out."""

_LOWER = ("minimum", "exclusiveMinimum")
_UPPER = ("maximum", "exclusiveMaximum")
_COUNTS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
)


def settle_counts(pointer: str, schema: Schema) -> None:
    """Write lengths and counts as integers, in place: ``2.0`` is one, but not to the engine.

    Raises:
        GrammarError: one is larger than any document.
    """
    for keyword in _COUNTS:
        if schema.get(keyword, 0) > _LARGEST_COUNT:
            raise GrammarError(
                f"{keyword!r} at {pointer} is larger than {_LARGEST_COUNT}",
                pointer=pointer_to(pointer, keyword),
                keyword=keyword,
                code="unsupported_json_schema",
            )
        if keyword in schema:
            schema[keyword] = int(schema[keyword])


def narrow_bounds(pointer: str, schema: Schema) -> list[str]:
    """Make the numbers of ``schema`` exact, in place; warnings where values are lost."""
    unfold_draft4(schema)
    warnings = []
    for keyword in (*_LOWER, *_UPPER):
        bound = schema.get(keyword)
        if bound is None or abs(bound) <= EXACT:
            continue
        schema[keyword] = (
            _upward(pointer, keyword, bound)
            if keyword in _LOWER
            else -_upward(pointer, keyword, -bound)
        )
        if abs(bound) > LARGEST:
            warnings.append(f"{pointer}: numbers beyond {LARGEST} are not generated")
    return warnings


def unfold_draft4(schema: Schema) -> None:
    """Read draft 4's ``"minimum": 5, "exclusiveMinimum": true`` as the later drafts, in place."""
    for bound, exclusive in (_LOWER, _UPPER):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)


def _upward(pointer: str, keyword: str, bound: float) -> int:
    """The least exact number at or above ``bound``; `LARGEST` and its negative end the range."""
    if bound > LARGEST:
        raise GrammarError(
            f"{keyword!r} at {pointer} leaves no number below {LARGEST}, the largest supported",
            pointer=pointer_to(pointer, keyword),
            keyword=keyword,
            code="unsupported_json_schema",
        )
    exact = float(max(bound, -LARGEST))
    return int(exact if exact >= bound else math.nextafter(exact, math.inf))


def part_bounds(positions: Sequence[Position]) -> None:
    """Move exclusive bounds off whole numbers where an opposite one is less than 1 away, in place.

    Between such two the engine lets the whole number itself through.
    """
    for position in positions:
        unfold_draft4(position.schema)
    while _part(positions, _LOWER, _UPPER, 1) or _part(positions, _UPPER, _LOWER, -1):
        pass  # what was moved may be near to another


def _part(
    positions: Sequence[Position], bounds: tuple[str, str], opposite: tuple[str, str], sign: int
) -> bool:
    """Move the second of ``bounds``; whether any was."""
    inclusive, exclusive = bounds
    others = sorted({p.schema[key] for p in positions for key in opposite if key in p.schema})
    moved = False
    for position in positions:
        bound = position.schema.get(exclusive)
        if bound is None or bound != int(bound):
            continue
        first, last = sorted((bound, bound + sign))
        if bisect_left(others, last) > bisect_right(others, first):
            del position.schema[exclusive]
            least = bound + sign * _GAP * max(1, abs(bound))
            other = position.schema.get(inclusive, least)
            position.schema[inclusive] = sign * max(sign * least, sign * other)
            moved = True
    return moved


def check_constants(pointer: str, value: Any, keyword: str) -> None:
    """Refuse numbers inside ``value`` (of ``const`` or ``enum``) that would be rounded."""
    if is_number(value) and abs(value) > EXACT:
        raise GrammarError(
            f"{keyword!r} at {pointer} holds {value!r}; numbers beyond 2^53 are not exact",
            pointer=pointer_to(pointer, keyword),
            keyword=keyword,
            code="unsupported_json_schema",
        )
    if isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            check_constants(pointer, item, keyword)


def check_multiples(positions: Sequence[Position]) -> None:
    """Refuse ``multipleOf`` values that are too large, alone or where schemas are intersected.

    The engine's automaton has a state for each remainder, and it multiplies the divisors of
    intersected schemas in uint32, unchecked.
    """
    found = [position for position in positions if "multipleOf" in position.schema]
    if not found:
        return
    divisors = [Decimal(repr(position.schema["multipleOf"])).normalize() for position in found]
    largest = max(range(len(found)), key=lambda index: divisors[index])
    if max(map(_coefficient, divisors)) > _MOST_REMAINDERS:
        raise _too_many_remainders(found[largest])
    if len(found) == 1 and not any(
        position.schema.keys() & {"allOf", "$ref"} for position in positions
    ):
        return
    decimals = max(0, *(-_exponent(divisor) for divisor in divisors))
    scaled = [int(divisor.scaleb(decimals)) for divisor in divisors]
    common = _common_multiple(scaled)
    if (
        common * max(scaled) >= 2**32
        or _coefficient(Decimal(common).normalize()) > _MOST_REMAINDERS
    ):
        raise _too_many_remainders(found[largest])


def _too_many_remainders(position: Position) -> GrammarError:
    return GrammarError(
        f"'multipleOf' at {position.pointer} has too many remainders to follow, alone or together "
        "with the others of this schema",
        pointer=pointer_to(position.pointer, "multipleOf"),
        keyword="multipleOf",
        code="grammar_too_complex",
    )


def _coefficient(number: Decimal) -> int:
    return int("".join(map(str, number.as_tuple().digits)))


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _common_multiple(values: Iterable[int]) -> int:
    result = 1
    for value in values:
        result = math.lcm(result, value)
        if result >= 2**32:
            break
    return result
