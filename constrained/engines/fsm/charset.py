"""The character sets of a regex tree as code points, with or without their case."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from functools import cache, lru_cache

from phloem.constrained.regex import code_points
from phloem.constrained.regex.code_points import Ranges, union, without
from phloem.constrained.regex.scanner import Scanner

_CHAR = r"(?:\\x\{[0-9a-f]+\}|[^\\\[\]])"
_PROPERTY = re.compile(r"\\([pP])\{(\^?)([^}]*)\}")
_RANGE = re.compile(f"{_CHAR}(?:-{_CHAR})?")
_KEPT = 1_024


@lru_cache(_KEPT)
def read(rust: str, ignore_case: bool) -> Ranges:
    """The characters of `Chars.rust`.

    Raises:
        GrammarError: it names an unknown property.
    """
    if not ignore_case or rust == "(?s:.)":
        return code_points.read(rust)
    scanner = Scanner(rust, "character class")
    return _class(scanner) if scanner.accept("[") else any_case(code_points.read(rust))


def any_case(ranges: Ranges) -> Ranges:
    """``ranges`` and whatever differs from them only in case, by simple folding."""
    starts = [low for low, _ in ranges]

    def holds(code: int) -> bool:
        index = bisect_right(starts, code) - 1
        return index >= 0 and code <= ranges[index][1]

    equal = _equal_but_for_case()
    return union([ranges, *(others for code, others in equal.items() if holds(code))])


def _class(scanner: Scanner) -> Ranges:
    """The inside of a class, with its ``]``: case is forgotten before it is negated, as in Rust."""
    negated = scanner.accept("^")
    parts: list[Ranges] = []
    while not scanner.accept("]"):
        parts.append(_class(scanner) if scanner.accept("[") else _item(scanner))
    found = any_case(union(parts))
    return without(found) if negated else found


def _item(scanner: Scanner) -> Ranges:
    known = _PROPERTY.match(scanner.text, scanner.position)
    item = known or _RANGE.match(scanner.text, scanner.position)
    assert item is not None, f"{scanner.text!r} is no character class"
    scanner.position = item.end()
    if known is None:
        return code_points.read(f"[{item[0]}]")
    letter, caret, name = known.groups()
    found = any_case(code_points.read(rf"[\p{{{name}}}]"))
    return without(found) if (letter == "P") != bool(caret) else found


@cache
def _equal_but_for_case() -> dict[int, Ranges]:
    """Code points that differ from others in case alone -> all that are equal but for case."""
    equal: defaultdict[str, list[int]] = defaultdict(list)
    for low, high in code_points.read(r"[\p{Changes_When_Casemapped}]"):
        for code in range(low, high + 1):
            equal[_folded(chr(code))].append(code)
    spans = (tuple((code, code) for code in codes) for codes in equal.values())
    return {low: codes for codes in spans for low, _ in codes}


def _folded(char: str) -> str:
    """Simple case folding: of what folds to several characters, the lower case or nothing."""
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char
