"""The document written anew in one form, whatever the draft and the way of referring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from referencing.jsonschema import DRAFT202012

from phloem.constrained.json_schema import dialect, formats, numbers
from phloem.constrained.json_schema.keywords import APPLICATORS, Schema, says_nothing
from phloem.constrained.json_schema.normalise.children import map_children
from phloem.constrained.json_schema.normalise.workspace import (
    DEFINITIONS,
    ROOT,
    Place,
    Rewrite,
    Workspace,
)
from phloem.constrained.json_schema.positions import Position

_LOOKING = frozenset({"if", "unevaluatedProperties", "unevaluatedItems"})
"""Keywords that, even allowing everything, have a meaning for an ``unevaluated`` one outside."""

_WORD = re.compile(r"[A-Za-z0-9_]+")


def settle(positions: Sequence[Position], logic: Sequence[Rewrite]) -> Workspace:
    """The schemas at ``positions``, the root first, as 2020-12 without annotations.

    What a ``$ref`` leads to becomes a definition, and the place where it stood refers to it.
    """
    workspace = Workspace(logic)
    workspace.contains_evaluates = dialect.of(positions[0].schema) is DRAFT202012
    references = _references(positions)
    places = {id(p.schema): Place(p.pointer, tuple(p.schema)) for p in positions}
    copies: dict[int, Schema] = {id(position.schema): {} for position in positions}

    def settled(child: Schema | bool) -> Schema | bool:
        if isinstance(child, bool) or id(child) not in references:
            return child if isinstance(child, bool) else copies[id(child)]
        reference: Schema = {"$ref": references[id(child)]}
        workspace.locate(reference, places[id(child)])
        return reference

    for position in positions:
        key = id(position.schema)
        newest = _newest(position, references)
        workspace.warnings += formats.drop_unknown(position.pointer, newest)
        workspace.locate(copies[key], places[key])
        copies[key].update(map_children(newest, settled))
    for key, reference in references.items():
        workspace.definitions[reference.removeprefix(DEFINITIONS)] = copies[key]
    workspace.definitions[ROOT] = settled(positions[0].schema)
    return workspace


def _references(positions: Iterable[Position]) -> dict[int, str]:
    """The new ``$ref`` to each schema that one leads to, by its id."""
    references: dict[int, str] = {}
    taken: set[str] = set()
    for position in positions:
        target = position.target
        if isinstance(target, dict) and id(target) not in references:
            name = _name(position.schema["$ref"], taken)
            taken.add(name)
            references[id(target)] = DEFINITIONS + name
    return references


def _name(reference: str, taken: AbstractSet[str]) -> str:
    """The last step of ``reference``, as the engine can look it up: it decodes no escapes."""
    name = "_".join(_WORD.findall(reference.rpartition("/")[2])) or "root"
    while name in taken:
        name += "_"
    return name


def _newest(position: Position, references: dict[int, str]) -> Schema:
    """The keywords of a schema that validate, as 2020-12 has them."""
    schema = {
        key: value
        for key, value in position.schema.items()
        if key in APPLICATORS and (key in _LOOKING or not says_nothing(key, position.schema))
    }
    if "$ref" in schema:
        if isinstance(position.target, bool):
            del schema["$ref"]
            schema["allOf"] = [*schema.get("allOf", ()), position.target]
        else:
            schema["$ref"] = references[id(position.target)]
    numbers.unfold_draft4(schema)
    listed = isinstance(schema.get("items"), list)
    rest = schema.pop("additionalItems", None)
    if listed:
        schema["prefixItems"] = schema.pop("items")
        if rest is not None:
            schema["items"] = rest
    return schema
