"""The schemas of a document that validation can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from referencing import Registry
from referencing.exceptions import Unresolvable

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema import dynamic
from phloem.constrained.json_schema.dialect import Dialect
from phloem.constrained.json_schema.keywords import APPLICATORS, Schema, is_schema
from phloem.constrained.json_schema.structure import (
    check_shape,
    check_structure,
    no_schemas,
    subschemas,
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


def reachable(document: Schema, dialect: Dialect) -> list[Position]:
    """Every schema that validation can come to, each once, the root first.

    Raises:
        GrammarError: a keyword's value has the wrong form, or a ``$ref`` leads nowhere, out of the
            document, or to what is no schema.
    """
    check_structure(document, dialect)
    dynamic.resolve(document)
    root = dialect.create_resource(document)
    todo: list[tuple[str, Any, Any]] = [("#", document, Registry[Any]().resolver_with_root(root))]
    seen: set[int] = set()
    positions: list[Position] = []
    while todo:
        pointer, schema, resolver = todo.pop()
        if isinstance(schema, bool) or id(schema) in seen:
            continue
        seen.add(id(schema))
        check_shape(pointer, schema, dialect)
        resolver = _inside(pointer, schema, resolver, dialect)
        target = None
        if "$ref" in schema:
            target, target_resolver = _resolve(pointer, schema["$ref"], resolver)
            todo.append((_target_pointer(pointer, schema["$ref"]), target, target_resolver))
        positions.append(Position(pointer, schema, target))
        todo.extend(
            (child_pointer, child, resolver)
            for child_pointer, child in subschemas(pointer, schema, APPLICATORS)
        )
    _check_targets(positions)
    return positions


def _inside(pointer: str, schema: Schema, resolver: Any, dialect: Dialect) -> Any:
    """The resolver for references in ``schema``."""
    if "$id" not in schema and "id" not in schema:
        return resolver
    try:
        return resolver.in_subresource(dialect.create_resource(schema))
    except ValueError:
        raise GrammarError(f"the identifier of {pointer} is no URI", pointer=pointer) from None


def _check_targets(positions: list[Position]) -> None:
    """Refuse a ``$ref`` into data or to a map of schemas, which rewriting would garble."""
    barred = no_schemas(position.schema for position in positions)
    for position in positions:
        if id(position.target) in barred:
            reference = position.schema["$ref"]
            raise _bad_reference(position.pointer, f"{reference!r} leads to what is no schema")


def _resolve(pointer: str, reference: str, resolver: Any) -> tuple[Schema | bool, Any]:
    """The schema that ``reference`` leads to, and the resolver for references in it."""
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
