"""What two schemas say of the items of an array, as one."""

from __future__ import annotations

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import both
from phloem.constrained.json_schema.normalise.workspace import Workspace

LIST_KEYWORDS = frozenset({"prefixItems", "items"})


def item(case: Schema, index: int) -> Schema | bool:
    """What ``case`` asks of the item at ``index``."""
    listed = case.get("prefixItems", ())
    found: Schema | bool = listed[index] if index < len(listed) else case.get("items", True)
    return found


def both_arrays(a: Schema, b: Schema, workspace: Workspace) -> Schema:
    """`LIST_KEYWORDS` for what both ask."""
    length = max(len(case.get("prefixItems", ())) for case in (a, b))
    merged: Schema = {}
    if length:
        merged["prefixItems"] = [both(item(a, index), item(b, index)) for index in range(length)]
    rest = both(a.get("items", True), b.get("items", True))
    return merged if rest is True else {**merged, "items": rest}
