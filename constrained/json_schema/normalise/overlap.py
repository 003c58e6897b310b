"""Which of several schemas may have a value in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.branches import cases, meet, plain_case
from phloem.constrained.json_schema.normalise.compose import both
from phloem.constrained.json_schema.normalise.values import Atoms, atom_of, atoms_of, identity
from phloem.constrained.json_schema.normalise.workspace import Workspace

Values = AbstractSet[Hashable]
_CONSTANT = frozenset({"const", "enum"})
_ABSENT: Values = frozenset()


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is quickly seen of a case of the schema number ``index``.

    ``values`` are all that it allows, if it lists them. ``tags`` are what it allows of properties:
    the constants of one that must be there, None if it may be anything, `_ABSENT` if it must not.
    """

    index: int
    case: Schema
    atoms: Atoms
    values: Values | None
    tags: Mapping[str, Values | None]


class Overlaps:
    """Of some schemas, which ones have values in common that satisfy what is ``given``.

    Attributes:
        possible: the indexes of those that allow anything, in order.
        pairs: indexes (i < j) of two that are not shown to be disjoint.
    """

    def __init__(
        self,
        schemas: Sequence[Schema | bool],
        workspace: Workspace,
        given: Schema | bool = True,
    ) -> None:
        self._schemas = schemas
        self._cases = [cases(both(given, schema), workspace) for schema in schemas]
        self._met: defaultdict[int, dict[int, list[Schema]]] = defaultdict(dict)
        self.possible = [index for index, found in enumerate(self._cases) if found]
        sketches = [_sketch(i, case) for i, found in enumerate(self._cases) for case in found]
        seen: set[tuple[int, int]] = set()
        for a, b in _suspects(sketches):
            workspace.spend(1)
            pair = id(a), id(b)
            if a.index != b.index and pair not in seen and _meet(a, b, workspace):
                self._note(a, b)
                self._note(b, a)
            seen.add(pair)
        self.pairs = [(i, j) for i in sorted(self._met) for j in sorted(self._met[i]) if i < j]

    def rivals(self, index: int) -> Iterator[Schema | bool]:
        """Schemas to rule out so that the one at ``index`` allows nothing that another does.

        Of the others these are the cases that it meets.
        """
        for other, found in sorted(self._met[index].items()):
            whole = len(found) == len(self._cases[other])
            yield from [self._schemas[other]] if whole else found

    def _note(self, a: Sketch, b: Sketch) -> None:
        found = self._met[a.index].setdefault(b.index, [])
        if b.case not in found:
            found.append(b.case)


def _sketch(index: int, case: Schema) -> Sketch:
    if "enum" in case:
        values = case["enum"]
        return Sketch(index, case, frozenset(map(atom_of, values)), _identities(values), {})
    atoms = atoms_of(case)
    return Sketch(index, case, atoms, None, _tags(case) if atoms == {"object"} else {})


def _identities(values: Iterable[Any]) -> Values:
    return frozenset(map(identity, values))


def _tags(case: Schema) -> dict[str, Values | None]:
    named = case.get("properties", {})
    tags: dict[str, Values | None] = {
        name: _constants(named.get(name)) for name in case.get("required", ())
    }
    return tags | {name: _ABSENT for name, schema in named.items() if schema is False}


def _constants(schema: Schema | bool | None) -> Values | None:
    if not isinstance(schema, dict) or not schema.keys() & _CONSTANT:
        return None
    constants = plain_case({key: value for key, value in schema.items() if key in _CONSTANT})
    return _identities(constants["enum"]) if constants else None


def _suspects(sketches: Sequence[Sketch]) -> Iterator[tuple[Sketch, Sketch]]:
    """Pairs that share a type, and where both list values a value, or else a common tag's."""
    by_atom: defaultdict[str, list[Sketch]] = defaultdict(list)
    for sketch in sketches:
        for atom in sketch.atoms:
            by_atom[atom].append(sketch)
    for members in by_atom.values():
        listing = [sketch for sketch in members if sketch.values is not None]
        others = [sketch for sketch in members if sketch.values is None]
        yield from _within((sketch, sketch.values or ()) for sketch in listing)
        yield from product(listing, others)
        tag = _common_tag(others)
        if tag is None:
            yield from combinations(others, 2)
        else:
            yield from _within((sketch, sketch.tags[tag] or ()) for sketch in others)


def _within(
    keyed: Iterable[tuple[Sketch, Iterable[Hashable]]],
) -> Iterator[tuple[Sketch, Sketch]]:
    """The pairs that share a key."""
    buckets: defaultdict[Hashable, list[Sketch]] = defaultdict(list)
    for sketch, keys in keyed:
        for key in keys:
            buckets[key].append(sketch)
    for bucket in buckets.values():
        yield from combinations(bucket, 2)


def _common_tag(sketches: Sequence[Sketch]) -> str | None:
    """A property whose constants every sketch lists."""
    first = sketches[0].tags if sketches else {}
    return next((name for name in first if all(s.tags.get(name) for s in sketches)), None)


def _meet(a: Sketch, b: Sketch, workspace: Workspace) -> bool:
    """Whether a value may satisfy both, as far as is found out."""
    if any(_tags_differ(a.tags[name], b.tags[name]) for name in a.tags.keys() & b.tags.keys()):
        return False
    return meet(a.case, b.case, workspace) is not None


def _tags_differ(a: Values | None, b: Values | None) -> bool:
    if a is None or b is None:
        return (a is None) != (b is None) and _ABSENT in (a, b)
    return not a & b and bool(a or b)
