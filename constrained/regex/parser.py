"""Text to tree: the regular core that ECMA-262, Python and Rust regexes have in common.

What the dialects read differently, look-behind, and what is not regular (back-references,
possessive and atomic groups), is refused rather than guessed at.
"""

from __future__ import annotations

import re
from dataclasses import replace

from phloem.constrained.limits import DEFAULT_LIMITS, Limits
from phloem.constrained.regex.charset import (
    ANY,
    COMMON,
    Shorthands,
    read_class,
    shorthand,
)
from phloem.constrained.regex.escapes import read_escape
from phloem.constrained.regex.quantifier import read_quantifier
from phloem.constrained.regex.render import literal
from phloem.constrained.regex.scanner import Scanner
from phloem.constrained.regex.tree import (
    Alt,
    Anchor,
    Chars,
    IgnoreCase,
    LookAhead,
    Node,
    Repeat,
    Seq,
)

GENEROUS = replace(DEFAULT_LIMITS, regex_chars=1_000_000, depth=200)
"""For reading back what this package wrote."""

_NAME = re.compile(r"\?P?<[A-Za-z_]\w*>")
_FLAGS = re.compile(r"\?([is]+)([:)])")
_REFUSED_GROUPS = {
    "?<=": "look-behind",
    "?<!": "look-behind",
    "?P=": "a back-reference",
    "?>": "an atomic group",
    "?(": "a conditional",
    "?#": "a comment",
}
_REFUSED_ESCAPES = {
    "b": "a word boundary (look-around)",
    "B": "a word boundary (look-around)",
    "A": "an anchor that only some dialects know; use '^'",
    "Z": "an anchor that only some dialects know; use '$'",
    "z": "an anchor that only some dialects know; use '$'",
    "k": "a back-reference",
    **dict.fromkeys("0123456789", "a back-reference or an octal escape"),
}


def parse(text: str, *, shorthands: Shorthands = COMMON, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The tree of ``text``.

    Raises:
        GrammarError: with the place of what is malformed or not supported.
    """
    scanner = Scanner(text, "regex")
    if len(text) > limits.regex_chars:
        scanner.fail(
            f"it is longer than {limits.regex_chars} characters", at=0, code="grammar_too_complex"
        )
    return _Parser(scanner, shorthands, limits).parse()


class _Parser:
    """Recursive descent; ``_dot_all`` and ``_depth`` are those of the group being read."""

    def __init__(self, scanner: Scanner, shorthands: Shorthands, limits: Limits) -> None:
        self._scanner = scanner
        self._shorthands = shorthands
        self._limits = limits
        self._dot_all = False
        self._depth = 0

    def parse(self) -> Node:
        ignore_case = self._leading_flags()
        node = self._alternatives()
        if not self._scanner.at_end():
            self._scanner.fail("this ')' closes nothing")
        return IgnoreCase(node) if ignore_case else node

    def _leading_flags(self) -> bool:
        match = _FLAGS.match(self._scanner.text, 1)
        if not self._scanner.text.startswith("(?") or match is None or match[2] == ":":
            return False
        self._scanner.position = match.end()
        self._dot_all = "s" in match[1]
        return "i" in match[1]

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        while self._scanner.accept("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._scanner.peek() not in ("", "|", ")"):
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def _atom(self) -> Node:
        scanner = self._scanner
        char = scanner.take()
        match char:
            case "(":
                return self._group()
            case "[":
                return read_class(scanner, self._shorthands)
            case ".":
                return ANY if self._dot_all else self._shorthands.dot[0]
            case "^":
                return Anchor("^")
            case "$":
                return self._shorthands.end[0]
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                scanner.fail(f"{char!r} has nothing to repeat", at=scanner.position - 1)
        return Chars(literal(char))

    def _escape(self) -> Node:
        scanner = self._scanner
        reason = _REFUSED_ESCAPES.get(scanner.peek())
        if reason is not None:
            scanner.fail(f"'\\{scanner.peek()}' is not supported: {reason}")
        inside = shorthand(scanner, self._shorthands)
        return Chars(f"[{inside}]" if inside else literal(read_escape(scanner)))

    def _group(self) -> Node:
        scanner = self._scanner
        start = scanner.position - 1
        self._depth += 1
        if self._depth > self._limits.depth:
            scanner.fail("groups are nested too deep", at=start, code="grammar_too_complex")
        outer_dot_all = self._dot_all
        node = self._look_ahead() or self._plain_group()
        if not scanner.accept(")"):
            scanner.fail("this group is not closed", at=start)
        self._dot_all = outer_dot_all
        self._depth -= 1
        return node

    def _look_ahead(self) -> Node | None:
        """What must or must not follow, where the group is that; None if it is another."""
        if self._scanner.accept("?="):
            return LookAhead(self._alternatives(), negated=False)
        if not self._scanner.accept("?!"):
            return None
        outer = self._shorthands
        self._shorthands = outer.reversed()
        node = self._alternatives()
        self._shorthands = outer
        return LookAhead(node, negated=True)

    def _plain_group(self) -> Node:
        ignore_case = self._group_head()
        node = self._alternatives()
        return IgnoreCase(node) if ignore_case else node

    def _group_head(self) -> bool:
        """Consume what stands between ``(`` and the body; whether case is ignored inside."""
        scanner = self._scanner
        for head, name in _REFUSED_GROUPS.items():
            if scanner.text.startswith(head, scanner.position):
                scanner.fail(f"{name} is not supported", at=scanner.position - 1)
        if scanner.peek() != "?" or scanner.accept("?:"):
            return False
        if (named := _NAME.match(scanner.text, scanner.position)) is not None:
            scanner.position = named.end()
            return False
        flags = _FLAGS.match(scanner.text, scanner.position)
        if flags is None or flags[2] == ")":
            scanner.fail("this kind of group is not supported", at=scanner.position - 1)
        scanner.position = flags.end()
        self._dot_all = self._dot_all or "s" in flags[1]
        return "i" in flags[1]

    def _repeated(self, item: Node) -> Node:
        """``item`` with the quantifier that follows it, if one does."""
        scanner = self._scanner
        start = scanner.position
        bounds = read_quantifier(scanner, self._limits.repeats)
        if bounds is None:
            return item
        if isinstance(item, Anchor | LookAhead):
            scanner.fail("what matches no text cannot be repeated", at=start)
        scanner.accept("?")  # a lazy quantifier matches the same texts
        if read_quantifier(scanner, self._limits.repeats) is not None:
            scanner.fail("a quantifier follows a quantifier", at=start)
        return Repeat(item, *bounds)
