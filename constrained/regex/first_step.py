"""The ways in which a regex with look-ahead takes its next character, as partial derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.tree import (
    EMPTY,
    Alt,
    Anchor,
    Chars,
    LookAhead,
    Node,
    Repeat,
    Seq,
)

Demand = LookAhead | Anchor
"""What the rest of the text must fulfil: a look-ahead, or ``$``, which wants none."""


@dataclass(frozen=True, slots=True)
class Step:
    """Under ``demands`` on the text from here on, take one of ``chars`` and go on with ``rest``.

    Without ``chars``, the regex has matched.
    """

    demands: tuple[Demand, ...] = ()
    chars: Chars | None = None
    rest: Node = EMPTY


def steps(node: Node, *, at_start: bool) -> Iterator[Step]:
    """All ways to go on from ``node``; ``at_start``: where ``^`` is true."""
    match node:
        case Chars():
            yield Step((), node)
        case Anchor("^"):
            if at_start:
                yield Step()
        case Anchor() | LookAhead():
            yield Step((node,))
        case Alt(options):
            for option in options:
                yield from steps(option, at_start=at_start)
        case Seq(items):
            yield from _sequence_steps(items, at_start)
        case Repeat():
            yield from _repeat_steps(node, at_start)
        case _:
            raise GrammarError("regex: look-ahead is not supported where case is ignored")


def _sequence_steps(items: tuple[Node, ...], at_start: bool) -> Iterator[Step]:
    if not items:
        yield Step()
        return
    tail = sequence(*items[1:])
    for step in steps(items[0], at_start=at_start):
        yield from _followed(step, tail, at_start)


def _repeat_steps(node: Repeat, at_start: bool) -> Iterator[Step]:
    """If one round can be empty here, so can all that are still missing."""
    if node.low == 0:
        yield Step()
    if node.high == 0:
        return
    once_more = repeat(node.item, max(node.low - 1, 0), _less(node.high))
    for step in steps(node.item, at_start=at_start):
        if step.chars is not None:
            yield Step(step.demands, step.chars, sequence(step.rest, once_more))
        elif node.low > 0:
            yield from _followed(step, repeat(node.item, 0, node.low - 1), at_start)


def _followed(step: Step, tail: Node, at_start: bool) -> Iterator[Step]:
    """``step``, and ``tail`` behind what it goes on with."""
    if step.chars is not None:
        yield Step(step.demands, step.chars, sequence(step.rest, tail))
        return
    for later in steps(tail, at_start=at_start):
        yield Step(step.demands + later.demands, later.chars, later.rest)


def sequence(*nodes: Node) -> Node:
    """``nodes`` in a row, without sequences inside the sequence."""
    items: list[Node] = []
    for node in nodes:
        items.extend(node.items if isinstance(node, Seq) else (node,))
    return items[0] if len(items) == 1 else Seq(tuple(items))


def repeat(node: Node, low: int, high: int | None) -> Node:
    """``node`` repeated, or nothing."""
    return EMPTY if high == 0 else Repeat(node, low, high)


def _less(high: int | None) -> int | None:
    return None if high is None else high - 1
