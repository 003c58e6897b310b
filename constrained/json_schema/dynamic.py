"""``$dynamicRef`` and ``$recursiveRef`` where it is known beforehand what they lead to.

They lead to the outermost of the resources passed through that has the anchor they name. Which ones
are passed through is found by following all ways from the root.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from urllib.parse import urldefrag

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import APPLICATORS, Schema
from phloem.constrained.json_schema.resources import Resources, Spot
from phloem.constrained.json_schema.structure import subschemas
from phloem.constrained.strict_json import pointer_to

Scope = Mapping[str, Spot]
"""Name of a dynamic anchor -> the outermost schema passed through that has it."""

_KEYWORDS = ("$dynamicRef", "$recursiveRef")
_BASE = "https://document.invalid/"
"""For a document without an identifier, to refer to it from resources that it embeds."""
_MOST_STEPS = 20_000


def resolve(document: Schema) -> None:
    """Make a ``$ref`` of every dynamic reference in ``document``, whose structure is checked.

    Raises:
        GrammarError: what one leads to depends on the way to it.
    """
    resources = Resources(document)
    if any(spot.schema.keys() & set(_KEYWORDS) for spot in resources.spots.values()):
        if "$id" not in document:
            document["$id"] = _BASE
            resources = Resources(document)
        for (pointer, keyword), target in _Ways(resources).targets().items():
            _replace(resources.spots[pointer].schema, keyword, target)
    for (_, name), spot in resources.dynamic_anchors.items():
        if name:  # for a `$ref`, such an anchor is like any other
            spot.schema.setdefault("$anchor", spot.schema.pop("$dynamicAnchor"))


def _replace(schema: Schema, keyword: str, target: Spot | None) -> None:
    reference = schema.pop(keyword) if target is None else target.reference
    schema.pop(keyword, None)
    if "$ref" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), {"$ref": reference}]
    else:
        schema["$ref"] = reference


class _Ways:
    """All ways through a document from its root."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._targets: dict[tuple[str, str], Spot | None] = {}
        self._anchors: defaultdict[str, dict[str, Spot]] = defaultdict(dict)
        for (resource, name), spot in resources.dynamic_anchors.items():
            self._anchors[resource][name] = spot

    def targets(self) -> dict[tuple[str, str], Spot | None]:
        """(pointer, keyword) of each dynamic reference that can be come to -> its target.

        None: it refers as a ``$ref`` does.
        """
        seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        todo: list[tuple[Spot, Scope]] = [(self._resources.spots["#"], {})]
        while todo:
            spot, scope = todo.pop()
            scope = {**self._anchors.get(spot.resource, {}), **scope}
            state = spot.pointer, tuple(sorted((name, at.pointer) for name, at in scope.items()))
            if state not in seen:
                seen.add(state)
                todo.extend((onward, scope) for onward in self._onward(spot, scope))
            if len(seen) > _MOST_STEPS:
                raise _refuse(spot, "$ref", "there are too many ways to what it leads to")
        return self._targets

    def _onward(self, spot: Spot, scope: Scope) -> Iterator[Spot]:
        schema, resources = spot.schema, self._resources
        for pointer, child in subschemas(spot.pointer, schema, APPLICATORS):
            if isinstance(child, dict):
                yield resources.spots[pointer]
        found = [resources.find(spot, schema["$ref"])] if "$ref" in schema else []
        found += (self._follow(spot, keyword, scope) for keyword in _KEYWORDS if keyword in schema)
        yield from (target for target in found if target is not None)

    def _follow(self, spot: Spot, keyword: str, scope: Scope) -> Spot | None:
        """What a dynamic reference leads to; it must be the same whatever the way to it."""
        first = self._resources.find(spot, spot.schema[keyword])
        if first is None and not urldefrag(spot.schema[keyword]).fragment.startswith("/"):
            raise _refuse(spot, keyword, "it leads to nothing in this document")
        name = self._name(spot, keyword, first)
        target = None if name is None else scope.get(name, first)
        if self._targets.setdefault((spot.pointer, keyword), target) is not target:
            raise _refuse(spot, keyword, "what it leads to depends on the way to it")
        return first if target is None else target

    def _name(self, spot: Spot, keyword: str, first: Spot | None) -> str | None:
        """The dynamic anchor that is named, None if it is none."""
        name = urldefrag(spot.schema[keyword]).fragment
        if first is None:
            return None
        anchored = self._resources.dynamic_anchors.get((first.resource, name))
        return name if anchored is first else None


def _refuse(spot: Spot, keyword: str, reason: str) -> GrammarError:
    return GrammarError(
        f"{keyword!r} at {spot.pointer} cannot be enforced while decoding: {reason}",
        pointer=pointer_to(spot.pointer, keyword),
        keyword=keyword,
        code="unsupported_json_schema",
    )
