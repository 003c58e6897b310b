"""JSON text to values, refusing what parsers disagree on."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from phloem.constrained.errors import GrammarError

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def loads(text: str, *, depth: int) -> Any:
    """Parse ``text``; duplicate keys, NaN, lone surrogates, NUL and deep nesting are refused.

    Raises:
        GrammarError: with the reason.
    """
    if _nesting(text) > depth:
        raise GrammarError(
            f"the JSON text is nested more than {depth} levels deep", code="grammar_too_complex"
        )
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_not_json
        )
    except json.JSONDecodeError as error:
        raise GrammarError(f"not valid JSON: {error}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise GrammarError(f"not acceptable JSON: {error}") from None
    for string in strings(value):
        check_text(string)
    return value


def dumps(value: Any) -> str:
    """Compact JSON with keys in their order, which is the order of generation."""
    return _ENCODER.encode(value)


def pointer_to(parent: str, step: str | int) -> str:
    """The JSON pointer of a child, escaped as in RFC 6901."""
    return f"{parent}/{str(step).replace('~', '~0').replace('/', '~1')}"


def check_text(text: str) -> None:
    """Refuse NUL and lone surrogates, which no output can hold."""
    if "\0" in text:
        raise GrammarError("the text holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise GrammarError("the text holds a lone surrogate, which is no character") from None


def _nesting(text: str) -> int:
    deepest = level = 0
    for match in _BRACKETS_AND_STRINGS.finditer(text):
        if match[0] in "[{":
            level += 1
            deepest = max(deepest, level)
        elif match[0] in "]}":
            level -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise GrammarError(f"the key {twice!r} occurs twice in one object")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise GrammarError(f"the number {digits[:40]} is out of range")
    return number


def _not_json(constant: str) -> None:
    raise GrammarError(f"{constant} is not JSON")


def strings(value: Any) -> Iterator[str]:
    """Every string in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)
