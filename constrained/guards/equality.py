"""Equality of JSON values, as ``uniqueItems`` means it."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from phloem.constrained.errors import GrammarLimit

_MOST_DIGITS = 4_000
"""Of an integer; Python itself refuses to read more than 4300."""


def key_of(text: bytes) -> Hashable:
    """Equal for texts of equal values: by number, by characters, without regard to key order.

    Raises:
        GrammarLimit: ``text`` is nested too deep to be read.
    """
    try:
        return _key(json.loads(text, parse_int=_integer))
    except RecursionError as error:
        raise GrammarLimit("an item of an array is nested too deep to be compared") from error


def _key(value: Any) -> Hashable:
    if isinstance(value, bool):
        return ("boolean", value)  # which Python takes for a number
    if isinstance(value, list):
        return ("array", *map(_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    result: Hashable = value
    return result


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
