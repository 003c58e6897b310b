"""Which items there can be: whether they may run out while all must differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phloem.constrained import strict_json
from phloem.constrained.guards.stock import Stock
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.listing import Listing, Values
from phloem.constrained.json_schema.positions import Position

_DEEPEST = 8
_NONE: frozenset[str] = frozenset()
_LIMITS: Mapping[str, frozenset[str]] = {
    "string": frozenset({"maxLength", "pattern", "format"}),
    "number": frozenset({"maximum", "exclusiveMaximum", "multipleOf"}),
    "integer": frozenset({"maximum", "exclusiveMaximum", "multipleOf"}),
    "object": frozenset({"additionalProperties", "patternProperties", "maxProperties"}),
    "array": frozenset({"maxItems", "uniqueItems"}),
}
"""Type -> keywords without which a value, however begun, can go on in ways without number."""


class Stocks:
    """The stocks of items, by their schema."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.listing = Listing(positions)
        self._targets: Mapping[int, Any] = {
            id(position.schema): position.target for position in positions
        }

    def of(self, items: Any) -> Stock:
        """What there is of ``items``."""
        return Stock(self._endless(items), _written(self.listing.values(items)))

    def _endless(self, schema: Any, depth: int = 0) -> frozenset[str]:
        if schema is True:
            return frozenset(_LIMITS)
        if not isinstance(schema, dict) or depth > _DEEPEST or schema.keys() & {"enum", "const"}:
            return _NONE
        endless = frozenset(name for name in _types(schema) if _is_unlimited(name, schema))
        target = self._targets.get(id(schema))
        for part in (*schema.get("allOf", ()), *([] if target is None else [target])):
            endless &= self._endless(part, depth + 1)
        for keyword in schema.keys() & {"anyOf", "oneOf"}:
            branches = [self._endless(branch, depth + 1) for branch in schema[keyword]]
            endless &= _NONE.union(*branches)
        return endless


def _types(schema: Schema) -> Sequence[str]:
    types = schema.get("type", list(_LIMITS))
    return [types] if isinstance(types, str) else types


def _is_unlimited(name: str, schema: Schema) -> bool:
    if name not in _LIMITS or not _LIMITS[name].isdisjoint(schema):
        return False
    if name in ("number", "integer"):
        # Below 0 more digits lead away from a lower bound, not to it.
        lowest = (schema.get("minimum", 0), schema.get("exclusiveMinimum", 0))
        return all(bound is not True and bound >= 0 for bound in lowest)
    return True


def _written(values: Values | None) -> Sequence[bytes] | None:
    """``values`` as the engine writes them; None where that is not sure."""
    texts = [strict_json.dumps(value) for value in values] if values is not None else None
    if texts is None or any("\\" in text for text in texts) or _has_fraction(values):
        return None
    return sorted(text.encode() for text in texts)


def _has_fraction(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_fraction, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(map(_has_fraction, value))
    return isinstance(value, float)
