"""Anchors under the rule that the whole text must match."""

from __future__ import annotations

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.look_ahead import has_look_ahead, matched
from phloem.constrained.regex.tree import EMPTY, Alt, Anchor, IgnoreCase, Node, Repeat, Seq


def whole(node: Node) -> Node:
    """Drop the anchors that a whole-text match makes true anyway, and work out look-aheads.

    ``^abc$`` is ``abc``, and so in each alternative: ``^a|b$`` is ``a|b``. An anchor elsewhere
    (``a^b``) would make its branch match nothing: it is refused, since that is never meant.
    """
    if has_look_ahead(node):
        return matched(node)
    return _drop(node, at_start=True, at_end=True)


def _drop(node: Node, *, at_start: bool, at_end: bool) -> Node:
    match node:
        case Anchor(symbol):
            if not (at_start if symbol == "^" else at_end):
                place = "start" if symbol == "^" else "end"
                raise GrammarError(f"{symbol!r} stands where the text cannot {place}")
            return EMPTY
        case Seq(items):
            first = next((i for i, item in enumerate(items) if not _is_anchor(item)), len(items))
            last = max((i for i, item in enumerate(items) if not _is_anchor(item)), default=-1)
            return Seq(
                tuple(
                    _drop(item, at_start=at_start and i <= first, at_end=at_end and i >= last)
                    for i, item in enumerate(items)
                )
            )
        case Alt(options):
            return Alt(tuple(_drop(item, at_start=at_start, at_end=at_end) for item in options))
        case Repeat(item, low, high):
            once = high == 1
            inner = _drop(item, at_start=at_start and once, at_end=at_end and once)
            return Repeat(inner, low, high)
        case IgnoreCase(item):
            return IgnoreCase(_drop(item, at_start=at_start, at_end=at_end))
        case _:
            return node


def _is_anchor(node: Node) -> bool:
    return isinstance(node, Anchor)
