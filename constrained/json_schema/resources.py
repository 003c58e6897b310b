"""The resources that a document embeds, each under a URI of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from phloem.constrained.json_schema.keywords import SHAPES, Schema
from phloem.constrained.json_schema.structure import subschemas


@dataclass(frozen=True, slots=True)
class Spot:
    """A schema, and the resource it is in: by URI and by the pointer to its root."""

    pointer: str
    schema: Schema
    uri: str
    resource: str

    @property
    def reference(self) -> str:
        """A ``$ref`` to it that holds anywhere in the document."""
        path = self.pointer.removeprefix(self.resource).replace("%", "%25")
        return f"{self.uri}#{path}"


class Resources:
    """The schemas of ``document``, whose structure is checked, as they were at the start."""

    def __init__(self, document: Schema) -> None:
        self.spots = {spot.pointer: spot for spot in _spots(document)}

    @cached_property
    def roots(self) -> dict[str, Spot]:
        """The roots of the resources, by URI."""
        return {spot.uri: spot for spot in self.spots.values() if spot.pointer == spot.resource}

    @cached_property
    def dynamic_anchors(self) -> dict[tuple[str, str], Spot]:
        """(pointer of the resource, name) -> the schema with that ``$dynamicAnchor``.

        A ``$recursiveAnchor`` counts as one without a name.
        """
        recursive = {
            (root.resource, ""): root
            for root in self.roots.values()
            if root.schema.get("$recursiveAnchor") is True
        }
        return self._named("$dynamicAnchor") | recursive

    @cached_property
    def _anchors(self) -> dict[tuple[str, str], Spot]:
        return self._named("$anchor") | self.dynamic_anchors

    def find(self, spot: Spot, reference: str) -> Spot | None:
        """What a ``$ref`` in ``spot`` leads to, None if that is no schema here."""
        uri, fragment = urldefrag(urljoin(spot.uri, reference))
        root = self.roots.get(uri)
        if root is None:
            return None
        if not fragment or fragment.startswith("/"):
            return self.spots.get(root.pointer + unquote(fragment))
        return self._anchors.get((root.pointer, fragment))

    def _named(self, keyword: str) -> dict[tuple[str, str], Spot]:
        return {
            (spot.resource, spot.schema[keyword]): spot
            for spot in self.spots.values()
            if isinstance(spot.schema.get(keyword), str)
        }


def _spots(document: Schema) -> Iterator[Spot]:
    todo: list[tuple[str, Any, str, str]] = [("#", document, "", "#")]
    while todo:
        pointer, schema, uri, resource = todo.pop()
        if not isinstance(schema, dict):
            continue
        if "$id" in schema:
            uri, resource = urldefrag(urljoin(uri, schema["$id"])).url, pointer
        yield Spot(pointer, schema, uri, resource)
        todo.extend((*child, uri, resource) for child in subschemas(pointer, schema, SHAPES))
