"""The syntax tree of a regular expression, shared with EBNF (which adds `Ref`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


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


@dataclass(frozen=True, slots=True)
class LookAhead:
    """The empty text, where what follows begins with ``item``; or does not, if ``negated``."""

    item: Node
    negated: bool


Node = Chars | Anchor | Ref | Seq | Alt | Repeat | IgnoreCase | LookAhead

EMPTY = Seq(())
NOTHING = Alt(())
"""What no text matches."""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below ``node``."""
    match node:
        case Seq(items):
            return items
        case Alt(options):
            return options
        case Repeat(item=item) | IgnoreCase(item) | LookAhead(item=item):
            return (item,)
        case _:
            return ()


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """``node`` with each node directly below it changed."""
    match node:
        case Seq(items):
            return Seq(tuple(map(change, items)))
        case Alt(options):
            return Alt(tuple(map(change, options)))
        case Repeat(item=item) | IgnoreCase(item) | LookAhead(item=item):
            return replace(node, item=change(item))
        case _:
            return node


def some(node: Node, test: Callable[[Node], bool]) -> bool:
    """Whether ``test`` is true of ``node`` or one below it."""
    return test(node) or any(some(child, test) for child in children(node))


def depth(node: Node) -> int:
    """How many nodes lie on the longest way down."""
    return 1 + max(map(depth, children(node)), default=0)
