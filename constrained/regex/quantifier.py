"""Quantifiers, the same in regexes and EBNF."""

from __future__ import annotations

import re

from phloem.constrained.regex.scanner import Scanner

_SIMPLE: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_COUNTS = re.compile(r"\{(?!\})(\d*)(?:(,)(\d*))?\}")


def read_quantifier(scanner: Scanner, most: int) -> tuple[int, int | None] | None:
    """Consume a quantifier and return its bounds; None if none follows.

    Counts above ``most`` are refused. A brace that begins no counts is left alone.
    """
    simple = _SIMPLE.get(scanner.peek())
    if simple is not None:
        scanner.take()
        return simple
    match = _COUNTS.match(scanner.text, scanner.position)
    if match is None:
        return None
    low_digits, comma, high_digits = match.groups()
    if not low_digits:
        scanner.fail("write the lower bound of a repetition, as in {0,3}")
    if max(len(low_digits), len(high_digits or "")) > len(str(most)):
        scanner.fail(f"a repetition is limited to {most}", code="grammar_too_complex")
    low = int(low_digits)
    high = low if comma is None else int(high_digits) if high_digits else None
    if max(low, high or 0) > most:
        scanner.fail(f"a repetition is limited to {most}", code="grammar_too_complex")
    if high is not None and high < low:
        scanner.fail("a repetition's upper bound is below its lower bound")
    scanner.position = match.end()
    return low, high
