"""Sets of characters: classes, ``.`` and shorthands such as ``\\d``.

Dialects differ on the shorthands: ``\\d`` is ASCII in ECMA-262, any decimal digit in Python and
Rust. `COMMON` takes what every dialect agrees on, so that a text made under it matches in all of
them: a set is read as its narrowest meaning, a complement as the complement of the widest.
`ECMA` is exact, for places where a narrower reading would let something else through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from phloem.constrained.regex.escapes import read_escape
from phloem.constrained.regex.render import literal
from phloem.constrained.regex.scanner import Scanner
from phloem.constrained.regex.tree import Anchor, Chars, LookAhead, Node, Repeat, Seq

ANY = Chars(r"(?s:.)")
NOT_LINE_END = Chars(r"[^\x{a}\x{d}\x{2028}\x{2029}]")


@dataclass(frozen=True, slots=True, eq=False)
class Shorthands:
    """The narrowest and the widest meaning of what dialects read differently.

    Attributes:
        letters: by letter, as the inside of a Rust character class.
        dot: of ``.``.
        end: of ``$``.
    """

    letters: Mapping[str, tuple[str, str]]
    dot: tuple[Chars, Chars]
    end: tuple[Node, Node]

    def reversed(self) -> Shorthands:
        """Widest and narrowest exchanged: for what must not match."""
        letters = {letter: (wide, narrow) for letter, (narrow, wide) in self.letters.items()}
        return Shorthands(letters, self.dot[::-1], self.end[::-1])


_ASCII_SPACE = r"\x{20}\x{9}-\x{d}"
_OTHER_SPACE = r"\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_ECMA_SPACE = _ASCII_SPACE + _OTHER_SPACE

_LINE_FEED = Chars(r"\x{a}")
_END = Anchor("$")
_BEFORE_LAST_LINE_FEED = LookAhead(Seq((Repeat(_LINE_FEED, 0, 1), _END)), negated=False)

COMMON = Shorthands(
    letters={
        "d": ("0-9", r"\p{Nd}"),
        "w": ("0-9A-Za-z_", r"\p{Alphabetic}\p{M}\p{N}\p{Pc}"),
        "s": (_ASCII_SPACE, _ECMA_SPACE + r"\x{85}\x{1c}-\x{1f}"),
    },
    dot=(NOT_LINE_END, Chars(r"[^\x{a}]")),
    end=(_END, _BEFORE_LAST_LINE_FEED),
)
WIDEST = COMMON.reversed()
ECMA = Shorthands(
    letters={
        "d": ("0-9", "0-9"),
        "w": ("0-9A-Za-z_", "0-9A-Za-z_"),
        "s": (_ECMA_SPACE, _ECMA_SPACE),
    },
    dot=(NOT_LINE_END, NOT_LINE_END),
    end=(_END, _END),
)

_PROPERTY = re.compile(r"\{\^?[A-Za-z_]+(=[A-Za-z_]+)?\}")


def shorthand(scanner: Scanner, shorthands: Shorthands, *, narrow: bool = True) -> str | None:
    r"""The set that ``\d``, ``\W``, ``\p{L}`` ... stand for, as the inside of a class.

    The backslash is consumed; None (and nothing more consumed) if no shorthand follows.
    """
    letter = scanner.peek()
    if letter and letter in "pP":
        match = _PROPERTY.match(scanner.text, scanner.position + 1)
        if match is None:
            scanner.fail(f"'\\{letter}' needs a property name in braces")
        scanner.position = match.end()
        return f"\\{letter}{match[0]}"
    if letter.lower() not in shorthands.letters:
        return None
    scanner.take()
    narrowest, widest = shorthands.letters[letter.lower()]
    if letter.islower():
        return narrowest if narrow else widest
    return f"[^{widest if narrow else narrowest}]"


def read_class(scanner: Scanner, shorthands: Shorthands) -> Chars:
    """A character class; its ``[`` is already consumed."""
    start = scanner.position - 1
    negated = scanner.accept("^")
    if scanner.peek() == "]":
        scanner.fail("write ']' inside a class as '\\]'")
    parts: list[str] = []
    while not scanner.accept("]"):
        if scanner.at_end():
            scanner.fail("this character class is not closed", at=start)
        parts.append(_class_part(scanner, shorthands, narrow=not negated))
    return Chars(f"[{'^' if negated else ''}{''.join(parts)}]")


def _class_part(scanner: Scanner, shorthands: Shorthands, *, narrow: bool) -> str:
    low = _class_item(scanner, shorthands, narrow=narrow)
    if len(low) > 1 or scanner.peek() != "-" or scanner.peek(2) in ("-", "-]"):
        return low if len(low) > 1 else literal(low)
    start = scanner.position - 1
    scanner.take()
    high = _class_item(scanner, shorthands, narrow=narrow)
    if len(high) > 1:  # as in [a-\d], where the hyphen stands for itself
        return literal(low) + literal("-") + high
    if high < low:
        scanner.fail(f"the range {low!r}-{high!r} is empty", at=start)
    return f"{literal(low)}-{literal(high)}"


def _class_item(scanner: Scanner, shorthands: Shorthands, *, narrow: bool) -> str:
    """One character as it is, or a set, which is always longer than one character."""
    if scanner.peek(2) in ("[:", "[.", "[="):
        scanner.fail("POSIX classes such as [:alpha:] are not supported")
    if not scanner.accept("\\"):
        return scanner.take()
    if scanner.accept("b"):
        return "\b"
    return shorthand(scanner, shorthands, narrow=narrow) or read_escape(scanner)
