"""From the engine's words to the place in the schema that they are about."""

from __future__ import annotations

import re

from phloem.constrained.json_schema.keywords import APPLICATORS, SHAPES, Schema
from phloem.constrained.json_schema.structure import subschemas
from phloem.constrained.strict_json import pointer_to

_ALIASES = {
    "patternProperty": "patternProperties",
    "min": "minProperties",  # "min/maxProperties only supported when ..."
    "references": "$ref",
}
_WORD = re.compile(r"[$A-Za-z]+")


def locate(document: Schema, message: str) -> tuple[str | None, str | None]:
    """(pointer, keyword) of the keyword that ``message`` names; no pointer if it occurs twice."""
    words = (_ALIASES.get(word, word) for word in _WORD.findall(message))
    found = {word: _occurrences(document, word) for word in words if word in APPLICATORS}
    for keyword, pointers in found.items():
        if pointers:
            return (pointers[0] if len(pointers) == 1 else None), keyword
    return None, None


def _occurrences(document: Schema, keyword: str) -> list[str]:
    pointers: list[str] = []
    todo: list[tuple[str, Schema | bool]] = [("#", document)]
    while todo:
        pointer, schema = todo.pop()
        if isinstance(schema, bool):
            continue
        if keyword in schema:
            pointers.append(pointer_to(pointer, keyword))
        todo.extend(subschemas(pointer, schema, SHAPES))
    return pointers
