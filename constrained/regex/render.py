"""A tree as a regex in the Rust syntax that the engine reads."""

from __future__ import annotations

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.tree import (
    NOTHING,
    Alt,
    Anchor,
    Chars,
    IgnoreCase,
    LookAhead,
    Node,
    Ref,
    Repeat,
    Seq,
)


def render(node: Node) -> str:
    """The expression for ``node``, in ASCII; ``node`` holds no `Ref` and no `LookAhead`.

    Raises:
        GrammarError: nothing matches some part of it, which the engine has no words for.
    """
    match node:
        case Chars(rust):
            return rust
        case Anchor(symbol):
            return symbol
        case Seq(items):
            return "".join(_atom(item) if isinstance(item, Alt) else render(item) for item in items)
        case Alt(options):
            if node == NOTHING:
                raise GrammarError("regex: nothing matches it")
            return "|".join(render(option) for option in options)
        case Repeat(item, low, high):
            return _atom(item) + quantifier(low, high)
        case IgnoreCase(item):
            return f"(?i:{render(item)})"
        case Ref(name):
            raise ValueError(f"a rule reference ({name}) has no place in a regex")
        case LookAhead():
            raise ValueError("the engine reads no look-ahead")


def quantifier(low: int, high: int | None) -> str:
    """The suffix for a repetition."""
    match low, high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _:
            return f"{{{low},{'' if high is None else high}}}"


def literal(char: str) -> str:
    """``char`` itself; all but ASCII letters and digits by code point, so nothing is special."""
    return char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):x}}}"


def _atom(node: Node) -> str:
    text = render(node)
    return text if isinstance(node, Chars | IgnoreCase) else f"(?:{text})"
