"""Which draft a schema is written in, and what that forbids."""

from __future__ import annotations

from typing import Any

from referencing import Specification
from referencing.jsonschema import (
    DRAFT4,
    DRAFT6,
    DRAFT7,
    DRAFT201909,
    DRAFT202012,
)

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.strict_json import pointer_to

Dialect = Specification[Any]

_BY_ID: dict[str, Dialect] = {
    "http://json-schema.org/draft-04/schema": DRAFT4,
    "http://json-schema.org/draft-06/schema": DRAFT6,
    "http://json-schema.org/draft-07/schema": DRAFT7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT201909,
    "https://json-schema.org/draft/2020-12/schema": DRAFT202012,
}


def of(schema: Schema) -> Dialect:
    """The dialect that ``$schema`` names; 2020-12 without one, and for one that is not known."""
    return _BY_ID.get(_name(schema), DRAFT202012)


def is_known(schema: Schema) -> bool:
    """Whether ``$schema`` is absent or names a dialect that is supported."""
    return "$schema" not in schema or _name(schema) in _BY_ID


def _name(schema: Schema) -> str:
    name = schema.get("$schema")
    return name.rstrip("#") if isinstance(name, str) else ""  # refused with the other shapes


def check_identifier(pointer: str, schema: Schema, dialect: Dialect) -> None:
    """Draft 4 spells ``$id`` as ``id``, which later drafts leave to everyone."""
    if dialect is DRAFT4 and not isinstance(schema.get("id", ""), str):
        raise _misplaced(pointer, "id", "must be a string")


def drop_ignored(schema: Schema, dialect: Dialect) -> None:
    """Up to draft 7 a ``$ref`` overrides everything beside it; drop that, in place."""
    if "$ref" in schema and dialect in (DRAFT4, DRAFT6, DRAFT7):
        for keyword in schema.keys() - {"$ref", "$schema", "definitions", "$defs"}:
            del schema[keyword]


def check_keywords(pointer: str, schema: Schema, dialect: Dialect) -> None:
    """Refuse what ``dialect`` would read differently from what its writer must have meant."""
    newest = dialect is DRAFT202012
    if newest and isinstance(schema.get("items"), list):
        raise _misplaced(pointer, "items", "is no array in 2020-12; use 'prefixItems'")
    if not newest and "prefixItems" in schema:
        raise _misplaced(pointer, "prefixItems", "is not known before 2020-12")
    if dialect is not DRAFT4:
        for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            if isinstance(schema.get(keyword), bool):
                raise _misplaced(pointer, keyword, "is a boolean in draft 4 only")
    if "$schema" in schema and of(schema) is not dialect:
        raise _misplaced(pointer, "$schema", "changes the dialect inside a document")


def _misplaced(pointer: str, keyword: str, reason: str) -> GrammarError:
    return GrammarError(
        f"{keyword!r} at {pointer} {reason}",
        pointer=pointer_to(pointer, keyword),
        keyword=keyword,
    )
