"""The meta-schemas of JSON Schema itself, which a document may refer to without holding them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from urllib.parse import urldefrag, urljoin

from jsonschema_specifications import REGISTRY
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7

from phloem.constrained.json_schema.dialect import Dialect, of
from phloem.constrained.json_schema.keywords import Schema

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def embed(document: Schema, dialect: Dialect) -> None:
    """Put the meta-schemas that ``document`` refers to among its definitions, in place.

    They keep their ``$id``, by which references find them. Those in another dialect are left out.
    """
    todo = list(_needed(document))
    if not todo:
        return
    keyword = "definitions" if dialect in (DRAFT4, DRAFT6, DRAFT7) else "$defs"
    definitions = document.setdefault(keyword, {})
    if not isinstance(definitions, dict):
        return  # refused with the other shapes
    done = set(_identifiers(document))
    while todo:
        uri = todo.pop()
        contents = REGISTRY.contents(uri)
        if uri not in done and isinstance(contents, dict) and of(contents) is dialect:
            done.add(uri)
            definitions[uri] = deepcopy(contents)
            todo.extend(_needed(contents, uri))


def _identifiers(value: Any) -> Iterator[str]:
    """What ``value`` may hold by its own identifier."""
    if isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _identifiers(item)
    if isinstance(value, dict):
        yield from (
            urldefrag(value[key]).url for key in ("$id", "id") if isinstance(value.get(key), str)
        )


def _needed(value: Any, base: str = "") -> Iterator[str]:
    """The meta-schemas that references inside ``value`` name."""
    if isinstance(value, list):
        for item in value:
            yield from _needed(item, base)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _REFERENCES and isinstance(item, str):
                uri = _absolute(base, item)
                if uri in REGISTRY:
                    yield uri
            yield from _needed(item, base)


def _absolute(base: str, reference: str) -> str:
    try:
        return urldefrag(urljoin(base, reference)).url
    except ValueError:
        return ""  # no URI, and refused as such later
