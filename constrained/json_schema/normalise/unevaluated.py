"""``unevaluatedProperties`` and ``unevaluatedItems``: what no other keyword has looked at.

What is looked at may depend on which branches hold. But more of it only means that less is asked
for, so a value is valid if there are branches that hold and leave nothing wrong: one case for each
choice of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import product

from phloem.constrained import strict_json
from phloem.constrained.json_schema.keywords import Schema, is_schema
from phloem.constrained.json_schema.normalise.compose import any_of, both, negation
from phloem.constrained.json_schema.normalise.values import distinct
from phloem.constrained.json_schema.normalise.workspace import Workspace

KEYWORDS = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_MOST_CHOICES = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """What is looked at where ``condition`` holds, too.

    Attributes:
        names, patterns, properties: properties by name, by pattern, and whether all are.
        first, alike, items: how many items at the start, items that satisfy one of the schemas,
            and whether all are.
    """

    condition: Schema | bool = True
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    properties: bool = False
    first: int = 0
    alike: tuple[Schema | bool, ...] = ()
    items: bool = False

    def and_(self, other: Seen) -> Seen:
        """What is looked at where both conditions hold."""
        return Seen(
            both(self.condition, other.condition),
            tuple(dict.fromkeys((*self.names, *other.names))),
            tuple(dict.fromkeys((*self.patterns, *other.patterns))),
            self.properties or other.properties,
            max(self.first, other.first),
            tuple(distinct((*self.alike, *other.alike))),
            self.items or other.items,
        )

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is looked at."""
        some = (self.names, self.patterns, self.properties, self.first, self.alike, self.items)
        return not any(some)


def rewrite_unevaluated(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` without its ``unevaluated`` keywords."""
    rest = {key: value for key, value in schema.items() if key not in KEYWORDS}
    if all(schema[key] in (True, {}) for key in KEYWORDS & schema.keys()):
        return rest
    choices = _seen(rest, workspace)
    return both(rest, any_of(both(seen.condition, _closed(schema, seen)) for seen in choices))


def _closed(schema: Schema, seen: Seen) -> Schema:
    """What the ``unevaluated`` keywords of ``schema`` ask of all that is not ``seen``."""
    closed: Schema = {}
    if "unevaluatedProperties" in schema and not seen.properties:
        closed["properties"] = dict.fromkeys(seen.names, True)
        closed["patternProperties"] = dict.fromkeys(seen.patterns, True)
        closed["additionalProperties"] = schema["unevaluatedProperties"]
    if "unevaluatedItems" in schema and not seen.items:
        closed["prefixItems"] = [True] * seen.first
        closed["items"] = any_of((schema["unevaluatedItems"], *seen.alike))
    return {key: value for key, value in closed.items() if value not in ({}, [])}


def _seen(schema: Schema | bool, workspace: Workspace) -> list[Seen]:
    """The choices of branches in ``schema``, none among them, with what they look at."""
    if isinstance(schema, bool):
        return [Seen()]
    choices = [_own(schema, workspace)]
    for options in _in_place(schema, workspace):
        choices = _distinct(a.and_(b) for a, b in product(choices, options))
        if len(choices) > _MOST_CHOICES:
            reason = "what it is about depends on too many branches"
            raise workspace.refuse("unevaluatedProperties", reason)
    return choices


def _own(schema: Schema, workspace: Workspace) -> Seen:
    """What the keywords of ``schema`` itself look at."""
    return Seen(
        names=tuple(schema.get("properties", ())),
        patterns=tuple(schema.get("patternProperties", ())),
        properties=bool(schema.keys() & {"additionalProperties", "unevaluatedProperties"}),
        first=len(schema.get("prefixItems", ())),
        alike=(schema["contains"],)
        if "contains" in schema and workspace.contains_evaluates
        else (),
        items=bool(schema.keys() & {"items", "unevaluatedItems"}),
    )


def _in_place(schema: Schema, workspace: Workspace) -> Iterator[list[Seen]]:
    """For each in-place keyword, the choices it gives."""
    if "$ref" in schema:
        yield _seen(workspace.target(schema["$ref"]), workspace)
    for member in schema.get("allOf", ()):
        yield _seen(member, workspace)
    for branch in schema.get("anyOf", ()):
        yield [Seen(), *_where(branch, branch, workspace)]
    if "oneOf" in schema:
        yield [
            Seen(),
            *(s for branch in schema["oneOf"] for s in _where(branch, branch, workspace)),
        ]
    if "if" in schema:
        condition = schema["if"]
        yes = _where(condition, both(condition, schema.get("then", True)), workspace)
        no = _where(negation(condition), schema.get("else", True), workspace)
        yield [Seen(), *yes, *no]
    for keyword in ("dependentSchemas", "dependencies"):
        for name, needed in schema.get(keyword, {}).items():
            if is_schema(needed):
                present: Schema = {"type": "object", "required": [name]}
                yield [Seen(), *_where(present, needed, workspace)]


def _where(condition: Schema | bool, schema: Schema | bool, workspace: Workspace) -> list[Seen]:
    """What ``schema`` looks at where ``condition`` holds, which implies it; nothing left out."""
    held = Seen(condition)
    return [found for seen in _seen(schema, workspace) if not (found := held.and_(seen)).is_nothing]


def _distinct(choices: Iterable[Seen]) -> list[Seen]:
    return list({strict_json.dumps(astuple(seen)): seen for seen in choices}.values())
