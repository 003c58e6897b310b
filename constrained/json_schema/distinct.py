"""Where in a document items and names must differ, and how many items that leaves at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from phloem.constrained import strict_json
from phloem.constrained.guards.equality import key_of
from phloem.constrained.guards.outline import Outline, Part
from phloem.constrained.guards.stock import Stock
from phloem.constrained.json_schema.escapes import has_free_keys
from phloem.constrained.json_schema.item_stock import Stocks
from phloem.constrained.json_schema.keywords import GUARDED, IN_PLACE, Schema
from phloem.constrained.json_schema.listing import Listing
from phloem.constrained.json_schema.normalise.sizes import is_for_guard
from phloem.constrained.json_schema.positions import Position


def outline_of(positions: Sequence[Position], ready: AbstractSet[str]) -> Outline | None:
    """Where items or names must differ; None if nowhere.

    Patterns must not be rewritten for the engine yet, apart from those that are ``ready``.
    """
    schemas = [position.schema for position in positions]
    if not any(
        _applies(schema) or _counts_names(schema) or is_for_guard(schema) for schema in schemas
    ):
        return None
    index = {id(position.schema): place for place, position in enumerate(positions)}
    stocks = Stocks(positions)
    outline = Outline([_part(position, index, stocks, ready) for position in positions])
    return outline if outline.root else None


def guarded(schema: Schema) -> AbstractSet[str]:
    """The keywords of ``schema`` that are enforced by the outline alone."""
    size = {"minProperties", "maxProperties"}
    return GUARDED.keys() | size if is_for_guard(schema) else GUARDED.keys()


def limit_items(positions: Sequence[Position]) -> None:
    """Let no array whose items must differ have more of them than there are values, in place.

    So none is begun in vain, and a schema that asks for more is found to be empty.
    """
    listing = Listing(positions)
    for position in positions:
        schema = position.schema
        first, rest = _items(schema)
        values = listing.values(rest) if _applies(schema) and not first else None
        if values is not None:
            most = len({key_of(strict_json.dumps(value).encode()) for value in values})
            schema["maxItems"] = min(most, schema.get("maxItems", most))


def _applies(schema: Schema) -> bool:
    if schema.get("uniqueItems") is not True or schema.get("maxItems", 2) <= 1:
        return False
    return _may_be("array", schema)


def _counts_names(schema: Schema) -> bool:
    """Whether the engine, which takes a name written twice for two, would miscount.

    Of the names that ``required`` does not list, the first is sure to be new.
    """
    least = len(schema.get("required", ())) + 1
    return has_free_keys(schema) and schema.get("minProperties", 0) > least


def _may_be(kind: str, schema: Schema) -> bool:
    types = schema.get("type", kind)
    return kind in types if isinstance(types, list) else kind == types


def _part(
    position: Position, index: Mapping[int, int], stocks: Stocks, ready: AbstractSet[str]
) -> Part:
    schema = position.schema

    def at(child: Any) -> int | None:
        return index.get(id(child))

    in_place = [at(child) for keyword in IN_PLACE for child in schema.get(keyword, ())]
    first, rest = _items(schema)
    return Part(
        stock=_stock(first, rest, stocks) if _applies(schema) else None,
        counted=_counts_names(schema),
        least=schema.get("minProperties", 0) if is_for_guard(schema) else 0,
        most=schema.get("maxProperties", math.inf) if is_for_guard(schema) else math.inf,
        together=(*in_place, at(position.target)),
        named={name: at(child) for name, child in schema.get("properties", {}).items()},
        patterns=tuple(
            (None if text in ready else text, at(child))
            for text, child in schema.get("patternProperties", {}).items()
        ),
        others=at(schema.get("additionalProperties")),
        first=tuple(map(at, first)),
        rest=at(rest),
    )


def _items(schema: Schema) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of the rest."""
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return schema.get("prefixItems", []), items


def _stock(first: list[Any], rest: Any, stocks: Stocks) -> Stock:
    return Stock() if first else stocks.of(rest)
