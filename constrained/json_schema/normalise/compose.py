"""Building schemas of schemas without needless nesting."""

from __future__ import annotations

from collections.abc import Iterable

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.values import distinct


def both(a: Schema | bool, b: Schema | bool) -> Schema | bool:
    """A schema for what satisfies both."""
    if a is False or b is False:
        return False
    if a is True or not a:
        return b
    return a if b is True or not b or a is b else all_of((a, b))


def all_of(schemas: Iterable[Schema | bool]) -> Schema | bool:
    """A schema for what satisfies every one."""
    members = distinct(member for schema in schemas for member in _members(schema, "allOf", True))
    if False in members:
        return False
    return members[0] if len(members) == 1 else {"allOf": members} if members else True


def any_of(schemas: Iterable[Schema | bool]) -> Schema | bool:
    """A schema for what satisfies at least one."""
    options = distinct(option for schema in schemas for option in _members(schema, "anyOf", False))
    if True in options or {} in options:
        return True
    return options[0] if len(options) == 1 else {"anyOf": options} if options else False


def negation(schema: Schema | bool) -> Schema | bool:
    """A schema for what does not satisfy ``schema``."""
    if isinstance(schema, bool) or not schema:
        return schema is False
    if schema.keys() == {"not"}:
        inner: Schema | bool = schema["not"]
        return inner
    return {"not": schema}


def _members(schema: Schema | bool, keyword: str, neutral: bool) -> Iterable[Schema | bool]:
    """The schemas that one which is nothing but ``keyword`` joins; none for ``neutral``."""
    if schema is neutral or (neutral and schema == {}):
        return []
    if isinstance(schema, dict) and schema.keys() == {keyword}:
        found: list[Schema | bool] = schema[keyword]
        return [part for member in found for part in _members(member, keyword, neutral)]
    return [schema]
