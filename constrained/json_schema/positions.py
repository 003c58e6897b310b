"""Where schemas stand in a document: by structure, and by reach from the root through ``$ref``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from referencing import Registry
from referencing._core import Resolver
from referencing.exceptions import Unresolvable

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema import dialect as dialect_rules
from phloem.constrained.json_schema.dialect import Dialect
from phloem.constrained.json_schema.keywords import (
    APPLICATORS,
    SHAPES,
    Schema,
    Shape,
    is_schema,
)
from phloem.constrained.strict_json import pointer_to


@dataclass(frozen=True, slots=True)
class Position:
    """A schema that takes part in validation.

    ``target`` is what its ``$ref`` leads to, None without one. ``schema`` is the document's own
    object, so that rewriting it in place rewrites the document.
    """

    pointer: str
    schema: Schema
    target: Schema | bool | None


def subschemas(
    pointer: str, schema: Schema, among: Mapping[str, Shape]
) -> Iterator[tuple[str, Schema | bool]]:
    """The schemas in the keywords ``among`` of ``schema``, which has been checked."""
    for keyword, value in schema.items():
        shape = among.get(keyword)
        for steps, child in shape.children(value) if shape else ():
            child_pointer = pointer_to(pointer, keyword)
            for step in steps:
                child_pointer = pointer_to(child_pointer, step)
            yield child_pointer, child


def _enter(pointer: str, schema: Schema, dialect: Dialect) -> None:
    """Refuse a keyword whose value has the wrong form, as the meta-schema would."""
    dialect_rules.check_identifier(pointer, schema, dialect)
    dialect_rules.drop_ignored(schema, dialect)
    for keyword, value in schema.items():
        shape = SHAPES.get(keyword)
        if shape is not None and not shape.fits(value):
            raise GrammarError(
                f"{keyword!r} at {pointer} must be {shape.expects}",
                pointer=pointer_to(pointer, keyword),
                keyword=keyword,
            )


def check_structure(document: Schema, dialect: Dialect) -> None:
    """Check the shape of everything below ``document``, definitions included."""
    todo: list[tuple[str, Schema | bool]] = [("#", document)]
    while todo:
        pointer, schema = todo.pop()
        if not isinstance(schema, bool):
            _enter(pointer, schema, dialect)
            todo.extend(subschemas(pointer, schema, SHAPES))


def reachable(document: Schema, dialect: Dialect) -> list[Position]:
    """Every schema that validation can come to, each once, the root first.

    Raises:
        GrammarError: a ``$ref`` leads nowhere, out of the document, or to what is no schema.
    """
    root = dialect.create_resource(document)
    todo: list[tuple[str, Any, Resolver[Any]]] = [
        ("#", document, Registry[Any]().resolver_with_root(root))
    ]
    seen: set[int] = set()
    positions: list[Position] = []
    while todo:
        pointer, schema, resolver = todo.pop()
        if isinstance(schema, bool) or id(schema) in seen:
            continue
        seen.add(id(schema))
        _enter(pointer, schema, dialect)
        if "$id" in schema or "id" in schema:
            resolver = resolver.in_subresource(dialect.create_resource(schema))
        target = None
        if "$ref" in schema:
            target, target_resolver = _resolve(pointer, schema["$ref"], resolver)
            todo.append((_target_pointer(pointer, schema["$ref"]), target, target_resolver))
        positions.append(Position(pointer, schema, target))
        todo.extend(
            (child_pointer, child, resolver)
            for child_pointer, child in subschemas(pointer, schema, APPLICATORS)
        )
    return positions


def _resolve(
    pointer: str, reference: str, resolver: Resolver[Any]
) -> tuple[Schema | bool, Resolver[Any]]:
    try:
        resolved = resolver.lookup(reference)
    except (Unresolvable, LookupError, ValueError, TypeError, AttributeError) as error:
        # The last four are what `referencing` lets through on odd ids and on odd documents.
        raise _bad_reference(pointer, f"{reference!r} is not in this document") from error
    if not is_schema(resolved.contents):
        raise _bad_reference(pointer, f"{reference!r} leads to what is no schema")
    return resolved.contents, resolved.resolver


def _bad_reference(pointer: str, message: str) -> GrammarError:
    return GrammarError(message, pointer=pointer_to(pointer, "$ref"), keyword="$ref")


def _target_pointer(pointer: str, reference: str) -> str:
    """Where errors below a target are said to be: there if it is a plain pointer, else here."""
    return reference if reference.startswith("#/") else pointer_to(pointer, "$ref")
