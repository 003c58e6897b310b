"""What a program is made of: immutable expressions, composed with ``+``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from phloem.frontend_lang.choices import ChoicesMethod
from phloem.frontend_lang.options import Options
from phloem.runtime.protocol import Constraint

Role = Literal["system", "user", "assistant"]


class Expr:
    """Base of the expressions; ``+`` joins them and strings in order."""

    __slots__ = ()

    def __add__(self, other: Expr | str) -> Expr:
        return _join(self, other)

    def __radd__(self, other: Expr | str) -> Expr:
        return _join(other, self)

    def __format__(self, spec: str) -> str:
        raise TypeError(
            f"a {type(self).__name__} inside an f-string would only print it; "
            "append it with + instead"
        )


@dataclass(frozen=True, slots=True)
class Text(Expr):
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Gen(Expr):
    """Text that the model writes, kept as variable ``name`` where that is given."""

    name: str | None
    options: Options
    constraint: Constraint | None


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """The one of ``choices`` that the model finds likeliest, by ``method``."""

    name: str | None
    choices: tuple[str, ...]
    method: ChoicesMethod


@dataclass(frozen=True, slots=True)
class RoleBegin(Expr):
    """Start of a chat turn."""

    role: Role


@dataclass(frozen=True, slots=True)
class RoleEnd(Expr):
    """End of the chat turn that ``role`` began."""

    role: Role


@dataclass(frozen=True, slots=True)
class ScopeBegin(Expr):
    """Start of the text that becomes variable ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class ScopeEnd(Expr):
    """End of the text that becomes variable ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence(Expr):
    """Expressions in order; never holds another sequence."""

    items: tuple[Expr, ...]


def as_expr(value: Any) -> Expr:
    """``value`` as an expression.

    Raises:
        TypeError: it is neither a string nor an expression.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return Text(value)
    raise TypeError(
        f"a program can append strings and expressions, not {type(value).__name__} ({value!r:.80})"
    )


def in_role(role: Role, expr: Expr | str) -> Expr:
    """``expr`` as one chat turn."""
    return RoleBegin(role) + expr + RoleEnd(role)


def flatten(expr: Expr) -> Iterator[Expr]:
    """The expressions of ``expr`` in order, without sequences."""
    if isinstance(expr, Sequence):
        yield from expr.items
    else:
        yield expr


def _join(left: Any, right: Any) -> Sequence:
    return Sequence((*flatten(as_expr(left)), *flatten(as_expr(right))))
