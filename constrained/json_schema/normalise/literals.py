"""Statements about arrays and objects that JSON Schema has no keyword for."""

from __future__ import annotations

from typing import NamedTuple

from phloem.constrained.json_schema.keywords import Schema


class Counted(NamedTuple):
    """Of the items from index ``start`` on, ``least`` to ``most`` (None: any) satisfy ``schema``.

    The entries of ``counted``, as which a case has its ``contains``.
    """

    schema: Schema | bool
    start: int = 0
    least: int = 1
    most: int | None = None


class Witness(NamedTuple):
    """Some property has a value that satisfies ``value``, and one of these names.

    The name satisfies ``name``, matches the regex ``within`` unless that is None, is none of
    ``besides`` and matches none of ``apart``. The regexes are keys of ``patternProperties``.
    """

    value: Schema | bool
    name: Schema | bool = True
    within: str | None = None
    besides: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
