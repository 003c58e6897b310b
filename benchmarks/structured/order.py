"""The order in which engines write the keys of an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schemas = list[dict[str, Any]]


def ordered(value: Any, schema: Any) -> Any:
    """``value`` with its keys as ``schema`` lists them, then what it requires, then the others."""
    return _ordered(value, list(_here(schema, schema)), schema)


def _ordered(value: Any, schemas: Schemas, root: Any) -> Any:
    if isinstance(value, dict):
        names = dict.fromkeys([*_listed(schemas, "properties"), *_listed(schemas, "required")])
        keys = [*(name for name in names if name in value), *(k for k in value if k not in names)]
        return {key: _ordered(value[key], _below(schemas, key, root), root) for key in keys}
    if isinstance(value, list):
        below = [item for schema in schemas for item in _here(schema.get("items"), root)]
        return [_ordered(item, below, root) for item in value]
    return value


def _listed(schemas: Schemas, keyword: str) -> Iterator[str]:
    for schema in schemas:
        names = schema.get(keyword)
        if isinstance(names, dict | list):
            yield from (name for name in names if isinstance(name, str))


def _below(schemas: Schemas, key: str, root: Any) -> Schemas:
    """The schemas of the value of ``key``."""
    found: Schemas = []
    for schema in schemas:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or key not in properties:
            found += _here(schema.get("additionalProperties"), root)
        else:
            found += _here(properties[key], root)
    return found


def _here(schema: Any, root: Any, depth: int = 12) -> Iterator[dict[str, Any]]:
    """``schema`` and those that speak of the same value."""
    if not isinstance(schema, dict) or depth == 0:
        return
    yield schema
    for keyword, value in schema.items():
        if keyword in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
            for item in value:
                yield from _here(item, root, depth - 1)
        elif keyword in ("then", "else", "if"):
            yield from _here(value, root, depth - 1)
        elif keyword == "$ref" and isinstance(value, str):
            yield from _here(_resolve(value, root), root, depth - 1)


def _resolve(reference: str, root: Any) -> Any:
    """What a local JSON pointer leads to; None if it leads nowhere."""
    if not reference.startswith("#"):
        return None
    place = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and step.isdigit() and int(step) < len(place):
            place = place[int(step)]
        elif isinstance(place, dict):
            place = place.get(step)
        else:
            return None
    return place
