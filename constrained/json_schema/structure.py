"""A document by its structure: the shape of every schema in it, definitions included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema import dialect as dialect_rules
from phloem.constrained.json_schema.dialect import Dialect
from phloem.constrained.json_schema.keywords import SHAPES, Schema, Shape
from phloem.constrained.strict_json import pointer_to

_MAPS = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
_DATA = {"enum", "const", "default", "examples"}


class Place(NamedTuple):
    """A schema in the document, and the base URI of what it refers to."""

    pointer: str
    schema: Schema
    base: str


def subschemas(
    pointer: str, schema: Schema, among: Mapping[str, Shape]
) -> Iterator[tuple[str, Schema | bool]]:
    """The schemas in the keywords ``among`` of ``schema``, whose shape has been checked."""
    for keyword, value in schema.items():
        shape = among.get(keyword)
        for steps, child in shape.children(value) if shape else ():
            child_pointer = pointer_to(pointer, keyword)
            for step in steps:
                child_pointer = pointer_to(child_pointer, step)
            yield child_pointer, child


def check_shape(pointer: str, schema: Schema, dialect: Dialect) -> None:
    """Refuse a keyword whose value has the wrong form, as the meta-schema would.

    What ``dialect`` ignores beside a ``$ref`` is dropped first, in place.
    """
    dialect_rules.check_identifier(pointer, schema, dialect)
    dialect_rules.drop_ignored(schema, dialect)
    for keyword, value in schema.items():
        shape = SHAPES.get(keyword)
        if shape is not None and not shape.fits(value):
            raise _refuse(pointer, keyword, f"must be {shape.expects}")


def check_structure(document: Schema, dialect: Dialect) -> None:
    """Check the shape of every schema in ``document``, whether anything refers to it or not.

    Raises:
        GrammarError: a keyword's value has the wrong form, or an identifier is there twice.
    """
    found: list[Place] = []
    todo: list[tuple[str, Schema | bool, str]] = [("#", document, "")]
    while todo:
        pointer, schema, base = todo.pop()
        if isinstance(schema, bool):
            continue
        check_shape(pointer, schema, dialect)
        base = _join(pointer, base, schema.get("$id", ""))
        found.append(Place(pointer, schema, base))
        todo.extend((*child, base) for child in subschemas(pointer, schema, SHAPES))
    _check_identifiers(found)


def no_schemas(schemas: Iterable[Schema]) -> set[int]:
    """The ids of the arrays and objects in ``schemas`` that are data or maps of schemas."""
    ids: set[int] = set()
    for schema in schemas:
        ids.update(id(schema[keyword]) for keyword in schema.keys() & _MAPS)
        for keyword in schema.keys() & _DATA:
            ids.update(map(id, _containers(schema[keyword])))
    return ids


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _containers(item)


def _check_identifiers(found: Iterable[Place]) -> None:
    """Refuse an identifier that occurs twice: resolvers differ on which one counts."""
    seen: set[str] = set()
    for pointer, schema, base in found:
        names = {"$id": base, "$anchor": f"{base}#{schema.get('$anchor')}"}
        for keyword in schema.keys() & names.keys():
            if names[keyword] in seen:
                raise _refuse(pointer, keyword, "names another schema too")
            seen.add(names[keyword])


def _join(pointer: str, base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        raise _refuse(pointer, "$id", "is no URI") from None


def _refuse(pointer: str, keyword: str, reason: str) -> GrammarError:
    return GrammarError(
        f"{keyword!r} at {pointer} {reason}",
        pointer=pointer_to(pointer, keyword),
        keyword=keyword,
    )
