"""Sets of characters as sorted ranges of code points, read from and written as Rust classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

import regex

from phloem.constrained.regex.render import literal
from phloem.constrained.regex.scanner import Scanner

Ranges = tuple[tuple[int, int], ...]
"""Inclusive, in order, apart from each other."""

EVERY: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""All characters: surrogates are none."""


_LONG = 12


def read(rust: str) -> Ranges:
    """The characters of `Chars.rust`."""
    if rust == "(?s:.)":
        return EVERY
    scanner = Scanner(rust, "character class")
    found = _class(scanner) if scanner.accept("[") else _item(scanner)
    return union((found,))


def union(sets: Iterable[Ranges]) -> Ranges:
    """The characters in any of ``sets``."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(one for ranges in sets for one in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def common(a: Ranges, b: Ranges) -> Ranges:
    """The characters in both."""
    return without(without(b), a)


def without(ranges: Ranges, everything: Ranges = EVERY) -> Ranges:
    """The characters of ``everything`` that are not in ``ranges``."""
    return tuple(_gaps(ranges, everything))


def _gaps(ranges: Ranges, everything: Ranges) -> Iterator[tuple[int, int]]:
    index = 0
    for low, high in everything:
        while index < len(ranges) and ranges[index][1] < low:
            index += 1
        for start, end in ranges[index:]:
            if start > high:
                break
            if start > low:
                yield low, start - 1
            low = end + 1
        if low <= high:
            yield low, high


def write(ranges: Ranges, named: Mapping[Ranges, str]) -> str:
    """A Rust class for ``ranges``, of which there is at least one, by those of ``named`` if long.

    Properties such as ``\\p{L}`` are hundreds of ranges. No class stands inside another, so that
    `parse` reads the same set.
    """
    other = without(ranges)
    if min(len(ranges), len(other)) > _LONG:
        for known, rust in named.items():
            for base, text in _readable(known, rust):
                for wanted, sign in ((ranges, ""), (other, "^")):
                    more = without(base, wanted)
                    if len(more) <= _LONG and not without(wanted, base):
                        return f"[{sign}{text}{_spans(more)}]"
    if not other:
        return "(?s:.)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _spans(ranges)
    return f"[^{_spans(other)}]" if len(other) < len(ranges) else f"[{_spans(ranges)}]"


def _readable(known: Ranges, rust: str) -> Iterator[tuple[Ranges, str]]:
    """``known`` or its complement as the inside of a class, if no class stands inside ``rust``."""
    inside = rust.removeprefix("[").removesuffix("]")
    inside = inside.removeprefix("[").removesuffix("]") if inside.startswith("[^") else inside
    if rust.startswith("[") and "[" not in inside:
        negated = inside.startswith("^")
        yield (without(known), inside[1:]) if negated else (known, inside)


def _spans(ranges: Ranges) -> str:
    return "".join(
        literal(chr(low)) + (f"-{literal(chr(high))}" if low < high else "") for low, high in ranges
    )


def _class(scanner: Scanner) -> Ranges:
    """The inside of a class, up to and with its ``]``."""
    negated = scanner.accept("^")
    parts: list[Ranges] = []
    while not scanner.accept("]"):
        part = _class(scanner) if scanner.accept("[") else _item(scanner)
        if scanner.accept("-"):
            part = ((part[0][0], _item(scanner)[0][0]),)
        parts.append(part)
    found = union(parts)
    return without(found) if negated else found


def _item(scanner: Scanner) -> Ranges:
    char = scanner.take()
    if char == "\\":
        letter = scanner.take()
        if letter in "pP":
            return _property(f"\\{letter}{_braced(scanner)}")
        char = chr(int(_braced(scanner)[1:-1], 16))
    return ((ord(char), ord(char)),)


def _braced(scanner: Scanner) -> str:
    end = scanner.text.index("}", scanner.position)
    return scanner.take(end + 1 - scanner.position)


@cache
def _property(name: str) -> Ranges:
    """The characters with a Unicode property.

    Raises:
        GrammarError: it is not known.
    """
    try:
        runs = regex.finditer(f"{name}+", _alphabet())
    except regex.error:
        Scanner(name, "regex").fail("this property is not known")
    spans = (run.span() for run in runs)
    return union((_code_points(start, end) for start, end in spans))


@cache
def _alphabet() -> str:
    return "".join(chr(code) for low, high in EVERY for code in range(low, high + 1))


def _code_points(start: int, end: int) -> Ranges:
    low, high = ord(_alphabet()[start]), ord(_alphabet()[end - 1])
    return ((low, high),) if not low < 0xD800 <= high else ((low, 0xD7FF), (0xE000, high))


def partition(sets: Sequence[Ranges]) -> dict[int, Ranges]:
    """The characters by which of ``sets`` they are in: bit i of the key is for the i-th."""
    spans = [span for ranges in (*sets, EVERY) for span in ranges]
    edges = sorted({edge for low, high in spans for edge in (low, high + 1)})
    found: dict[int, list[tuple[int, int]]] = {}
    positions = [0] * len(sets)
    for low, after in pairwise(edges):
        if 0xD800 <= low < 0xE000:
            continue
        key = 0
        for index, ranges in enumerate(sets):
            while positions[index] < len(ranges) and ranges[positions[index]][1] < low:
                positions[index] += 1
            if positions[index] < len(ranges) and ranges[positions[index]][0] <= low:
                key |= 1 << index
        found.setdefault(key, []).append((low, after - 1))
    return {key: union([tuple(runs)]) for key, runs in found.items()}
