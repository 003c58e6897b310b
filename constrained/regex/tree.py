"""The syntax tree of a regular expression, shared with EBNF (which adds `Ref`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set. ``rust`` is the set in the Rust regex syntax of the engine."""

    rust: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """``^`` or ``$``: the start or the end of the text."""

    symbol: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule of an EBNF by name; ``position`` is where the text mentions it."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Seq:
    """Items one after the other; empty: the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any one of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``item`` between ``low`` and ``high`` times (None: no limit)."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class IgnoreCase:
    """``item`` with case ignored."""

    item: Node


Node = Chars | Anchor | Ref | Seq | Alt | Repeat | IgnoreCase

EMPTY = Seq(())


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below ``node``."""
    match node:
        case Seq(items):
            return items
        case Alt(options):
            return options
        case Repeat(item=item) | IgnoreCase(item):
            return (item,)
        case _:
            return ()
