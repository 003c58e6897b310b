"""Command-line options made from the fields of an annotated msgspec struct."""

from __future__ import annotations

import argparse
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import (
    BoolType,
    Field,
    FloatType,
    IntType,
    LiteralType,
    Metadata,
    NoneType,
    Type,
    UnionType,
    type_info,
)

S = TypeVar("S", bound=msgspec.Struct)


def add_options(parser: argparse.ArgumentParser, struct: type[msgspec.Struct]) -> None:
    """An option for each field of ``struct``: type, choices, default and help come from it."""
    info = type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    group = parser.add_argument_group(f"{struct.__name__} options")
    for field in info.fields:
        group.add_argument(option(field.name), dest=field.name, **settings(field))


def read_options(namespace: argparse.Namespace, struct: type[S]) -> S:
    """The struct that the parsed options describe; options not given keep the field's default.

    Raises:
        msgspec.ValidationError: a value is out of the field's range.
    """
    given = {
        name: getattr(namespace, name)
        for name in struct.__struct_fields__
        if getattr(namespace, name, None) is not None
    }
    return msgspec.convert(given, struct)


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def settings(field: Field) -> dict[str, Any]:
    """Keyword arguments of ``add_argument`` for one field."""
    kind, text = unwrap(field.type)
    shown = "" if field.default in (None, msgspec.NODEFAULT) else f" (default: {field.default})"
    common: dict[str, Any] = {"default": None, "help": (text + shown).replace("%", "%%")}
    if isinstance(kind, BoolType):
        return {**common, "action": argparse.BooleanOptionalAction}
    if isinstance(kind, LiteralType):
        values = list(kind.values)
        return {**common, "choices": values, "type": type(values[0])}
    if isinstance(kind, IntType):
        return {**common, "type": int, "metavar": "N"}
    if isinstance(kind, FloatType):
        return {**common, "type": float, "metavar": "X"}
    return {**common, "metavar": "TEXT"}


def unwrap(kind: Type) -> tuple[Type, str]:
    """The type without None and annotations, and the annotation's description."""
    text = ""
    while isinstance(kind, Metadata | UnionType):
        if isinstance(kind, Metadata):
            text = (kind.extra_json_schema or {}).get("description", text)
            kind = kind.type
        else:
            kind = next(each for each in kind.types if not isinstance(each, NoneType))
    return kind, text
