"""What turns out to be impossible only once all is rewritten, taken out of what refers to it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.children import map_children
from phloem.constrained.json_schema.normalise.compose import all_of, any_of
from phloem.constrained.json_schema.normalise.tidy import tidy
from phloem.constrained.json_schema.normalise.workspace import DEFINITIONS, ROOT, Workspace

Definitions = dict[str, Schema | bool]


def prune(definitions: Definitions, workspace: Workspace) -> Definitions:
    """``definitions`` where none but the root may be false."""
    empty: set[str] = set()
    while True:
        found = {name for name, schema in definitions.items() if schema is False}
        if found == empty:
            break
        empty = found
        definitions = {name: _pruned(one, empty, workspace) for name, one in definitions.items()}
    return {name: one for name, one in definitions.items() if one is not False or name == ROOT}


def _pruned(schema: Schema | bool, empty: AbstractSet[str], workspace: Workspace) -> Schema | bool:
    """``schema`` where a reference to one of ``empty`` is false."""
    if isinstance(schema, bool):
        return schema
    if schema.get("$ref", "").removeprefix(DEFINITIONS) in empty:
        return False
    inside = map_children(schema, lambda child: _pruned(child, empty, workspace))
    pruned = _simplified(inside) if inside != schema else schema
    if isinstance(pruned, dict):
        workspace.locate(pruned, workspace.place_of(schema))
    return pruned


def _simplified(schema: Schema) -> Schema | bool:
    if all_of(schema.get("allOf", ())) is False or any_of(schema.get("anyOf", [True])) is False:
        return False
    case = tidy(schema)
    if case is None:
        return False
    if "anyOf" in case:
        case = {**case, "anyOf": [option for option in case["anyOf"] if option is not False]}
    return case
