"""How long the texts are in which a regex finds a match."""

from __future__ import annotations

import math

from phloem.constrained.regex.parser import parse
from phloem.constrained.regex.tree import Alt, Anchor, Chars, IgnoreCase, Node, Repeat, Seq


def longest_match(pattern: str) -> float:
    """Characters of the longest text in which ``pattern`` finds a match; infinity without bound.

    Raises:
        GrammarError: the pattern is not supported.
    """
    node = parse(pattern)
    anchored = isinstance(node, Seq) and node.items[:1] + node.items[-1:] == _BOTH_ENDS
    return _length(node) if anchored else math.inf


_BOTH_ENDS = (Anchor("^"), Anchor("$"))


def _length(node: Node) -> float:
    match node:
        case Chars():
            return 1
        case Seq(items):
            return sum(map(_length, items))
        case Alt(options):
            return max(map(_length, options))
        case Repeat(item, _, high):
            return math.inf if high is None else high * _length(item)
        case IgnoreCase(item):
            return _length(item)
        case _:
            return 0
