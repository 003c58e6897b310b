"""Regexes without look-ahead for those that have it."""

from __future__ import annotations

from phloem.constrained.regex.charset import ANY
from phloem.constrained.regex.first_step import sequence
from phloem.constrained.regex.parser import GENEROUS, parse
from phloem.constrained.regex.threads import Thread, Threads, flat
from phloem.constrained.regex.tree import (
    EMPTY,
    NOTHING,
    Alt,
    Anchor,
    LookAhead,
    Node,
    Repeat,
    Seq,
    some,
)

_ANYTHING = Repeat(ANY, 0, None)
_START = Anchor("^")
_END = Anchor("$")


def searched(node: Node) -> Node:
    """A regex without look-ahead that finds a match in the same texts; ``node`` if it has none.

    Raises:
        GrammarError: it would be too large.
    """
    if not has_look_ahead(node):
        return node
    ended = _ended(node, _ANYTHING)
    if not has_look_ahead(ended):
        return sequence(ended, _END)
    return sequence(_START, _without(_begun(ended)), _END)


def matched(node: Node) -> Node:
    """A regex without look-ahead and anchors for the texts that ``node`` matches as a whole.

    Raises:
        GrammarError: it would be too large.
    """
    return _without(_ended(node, EMPTY))


def parted(node: Node) -> list[Node]:
    """Regexes without look-ahead that all find a match in the texts in which ``node`` does.

    They are the look-aheads that begin it, if it stands at the start, and what follows them.

    Raises:
        GrammarError: one of them would be too large.
    """
    items = node.items if isinstance(node, Seq) else (node,)
    count = next((i for i, item in enumerate(items) if not _is_empty(item)), len(items))
    if not any(map(_wants_start, items[:count])):
        return [searched(node)]
    aheads = [item for item in items[:count] if isinstance(item, LookAhead)]
    parts = [searched(sequence(_START, part)) for part in (*aheads, sequence(*items[count:]))]
    return [flat(_from_start(part)) for part in parts]


def _from_start(node: Node) -> Node:
    """``node`` without more than one ``^`` at its start."""
    match node:
        case Seq((Anchor("^"), Anchor("^"), *items)):
            return _from_start(sequence(_START, *items))
        case _:
            return node


def _is_empty(node: Node) -> bool:
    return isinstance(node, LookAhead) or node == _START


def _wants_start(node: Node) -> bool:
    """Whether ``node`` is true at the start alone; false if that is hard to tell."""
    match node:
        case LookAhead(item, negated=False) | Seq((item, *_)):
            return _wants_start(item)
        case _:
            return node == _START


def has_look_ahead(node: Node) -> bool:
    """Whether there is a look-ahead anywhere in ``node``."""
    return some(node, lambda one: isinstance(one, LookAhead))


def _ended(node: Node, tail: Node) -> Node:
    """``node`` and, unless the text must end there, ``tail``."""
    match node:
        case Anchor("$"):
            return EMPTY
        case LookAhead(item, negated=False) if tail == _ANYTHING:
            return _ended(item, tail)
        case Seq(items) if items:
            return sequence(*items[:-1], _ended(items[-1], tail))
        case Alt(options):
            return Alt(tuple(_ended(option, tail) for option in options))
        case _:
            return sequence(node, tail)


def _begun(node: Node) -> Node:
    """``node`` behind any text, unless it must be the start."""
    match node:
        case Anchor("^"):
            return node
        case Seq(items) if items:
            return sequence(_begun(items[0]), *items[1:])
        case Alt(options):
            return Alt(tuple(map(_begun, options)))
        case _:
            return sequence(_ANYTHING, node)


def _without(node: Node) -> Node:
    text = Threads(Thread(node, at_start=True), searched).text()
    return NOTHING if text is None else parse(text, limits=GENEROUS)
