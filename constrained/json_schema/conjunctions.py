"""How many regexes a single string may have to match at once.

The engine decides whether an intersection is empty by a search that doubles with every member:
milliseconds for twelve, a minute and a half for twenty-four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import APPLICATORS, IN_PLACE
from phloem.constrained.json_schema.positions import Position
from phloem.constrained.json_schema.structure import subschemas

MOST = 12


class Load(NamedTuple):
    """Upper bounds of the regexes that a schema puts on its own value, and on any one inside."""

    own: int = 0
    inside: int = 0


def check_conjunctions(positions: Sequence[Position]) -> None:
    """Refuse a schema that may put more than `MOST` regexes on one string.

    An upper bound: of schemas that apply together, the worst parts are taken to meet. Depth
    first; a schema inside itself adds nothing, as the engine refuses to intersect it with itself.
    """
    if sum(map(_regexes, positions)) <= MOST:
        return
    by_id = {id(position.schema): position for position in positions}
    loads: dict[int, Load] = {}
    entered: set[int] = set()
    todo = [positions[0]]
    while todo:
        position = todo[-1]
        key = id(position.schema)
        if key not in entered:
            entered.add(key)
            below = {id(schema) for schema in _below(position)} - entered
            todo.extend(by_id[child] for child in below & by_id.keys())
            continue
        todo.pop()
        if key not in loads:
            loads[key] = _load(position, loads)
            if max(loads[key]) > MOST:
                raise GrammarError(
                    f"more than {MOST} patterns and formats meet at or below {position.pointer}",
                    pointer=position.pointer,
                    code="grammar_too_complex",
                )


def _regexes(position: Position) -> int:
    return len(position.schema.keys() & {"pattern", "format"})


def _below(position: Position) -> Iterator[Any]:
    yield position.target
    for _, schema in subschemas(position.pointer, position.schema, APPLICATORS):
        yield schema


def _load(position: Position, loads: dict[int, Load]) -> Load:
    schema = position.schema

    def load(child: Any) -> Load:
        return loads.get(id(child), Load())

    own = _regexes(position)
    inside = max((max(load(child)) for child in _values(position)), default=0)
    together = [load(position.target), *map(load, schema.get("allOf", ()))]
    for keyword in ("anyOf", "oneOf"):
        branches = [load(branch) for branch in schema.get(keyword, ())]
        together.append(
            Load(
                max((branch.own for branch in branches), default=0),
                max((branch.inside for branch in branches), default=0),
            )
        )
    return Load(
        own + sum(member.own for member in together),
        inside + sum(member.inside for member in together),
    )


def _values(position: Position) -> Iterator[Any]:
    """The schemas of values inside, such as properties and items."""
    apart = {key: shape for key, shape in APPLICATORS.items() if key not in IN_PLACE}
    for _, schema in subschemas(position.pointer, position.schema, apart):
        yield schema
