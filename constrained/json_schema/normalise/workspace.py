"""What rewrites share: named schemas, the place in the user's document, a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from phloem.constrained import strict_json
from phloem.constrained.errors import ErrorCode, GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.strict_json import pointer_to

ROOT = "#"
DEFINITIONS = "#/$defs/"
MOST_WORK = 300_000
"""Keywords that rewriting may bring together, about 3 us each."""


@dataclass(frozen=True, slots=True)
class Place:
    """A schema of the user's document."""

    pointer: str
    keywords: tuple[str, ...]


class Indescribable(GrammarError):
    """What is left of a case once something is ruled out cannot be said in any keyword."""


class Workspace:
    """The document under rewriting.

    Attributes:
        definitions: the schemas by name that ``$ref`` ``#/$defs/NAME`` leads to; ``#`` is the root.
        place: where in the user's document the schema under rewriting comes from.
        logic: the rewrites of what applies in place.
        ready: regexes made by rewrites, already in the engine's syntax.
        warnings: what is not generated, for people to read.
        contains_evaluates: whether ``contains`` looks at the items that satisfy it, as far as
            ``unevaluatedItems`` is concerned; up to 2019-09 it does not.
        cases: the cases of schemas, by their id.
        known: the cases of schemas inside others, by their text; None where they are not known.
            ``depth`` is how far inside is being looked at present.
    """

    def __init__(self, logic: Sequence[Rewrite]) -> None:
        self.definitions: dict[str, Schema | bool] = {}
        self.logic = logic
        self.ready: set[str] = set()
        self.warnings: list[str] = []
        self.contains_evaluates = True
        self.cases: dict[int, tuple[Schema, list[Schema]]] = {}
        self.known: dict[str, list[Schema] | None] = {}
        self.depth = 0
        self.place = Place(ROOT, ())
        self._places: dict[int, tuple[Schema, Place]] = {}
        self._names: dict[str, str] = {}
        self._work = 0

    def locate(self, schema: Schema, place: Place) -> None:
        """Remember that ``schema`` stands at ``place`` in the user's document."""
        self._places[id(schema)] = schema, place  # holding it keeps its id from being used again

    def place_of(self, schema: Schema | bool) -> Place:
        """Where ``schema`` comes from: the place at work for what was made there."""
        found = self._places.get(id(schema))
        return found[1] if found else self.place

    @contextmanager
    def at(self, schema: Schema | bool) -> Iterator[None]:
        """While ``schema`` is being rewritten, `refuse` points to where it comes from."""
        outer = self.place
        self.place = self.place_of(schema)
        try:
            yield
        finally:
            self.place = outer

    def target(self, reference: str) -> Schema | bool:
        """What a ``$ref`` leads to, as it was before its own rewriting."""
        return self.definitions[reference.removeprefix(DEFINITIONS)]

    def define(self, schema: Schema) -> Schema:
        """A ``$ref`` to ``schema``, the same for equal schemas."""
        text = strict_json.dumps(schema)
        if text not in self._names:
            name = self.unused(f"part{len(self._names)}")
            self._names[text] = name
            self.definitions[name] = schema
            self.locate(schema, self.place_of(schema))
        return {"$ref": DEFINITIONS + self._names[text]}

    def unused(self, name: str) -> str:
        """A name for a definition like ``name``."""
        while name in self.definitions:
            name += "_"
        return name

    def refuse(
        self,
        keyword: str,
        reason: str,
        code: ErrorCode = "unsupported_json_schema",
        kind: type[GrammarError] = GrammarError,
    ) -> GrammarError:
        """The error, of a ``kind``, that ``keyword`` cannot be enforced here.

        It points to the keyword where the user's schema has it, else to the one it came from.
        """
        at, written = self.place.pointer, self.place.keywords
        if keyword not in written:
            keyword = next((word for word in written if word in _SOURCES), keyword)
        message = f"{keyword!r} at {at} cannot be enforced while decoding: {reason}"
        return kind(message, pointer=pointer_to(at, keyword), keyword=keyword, code=code)

    def indescribable(self, keyword: str, reason: str) -> GrammarError:
        """`refuse` a case that may be left out if there are others."""
        return self.refuse(keyword, reason, kind=Indescribable)

    def warn(self, what: str) -> None:
        """Tell people that less than the schema allows is generated."""
        self.warnings.append(f"{self.place.pointer}: {what}")

    def spend(self, work: int) -> None:
        """Count ``work``; refused beyond `MOST_WORK`."""
        self._work += work
        if self._work > MOST_WORK:
            reason = "written out case by case it is too large"
            raise self.refuse("anyOf", reason, "grammar_too_complex")


_SOURCES = (
    "not",
    "if",
    "oneOf",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "contains",
    "uniqueItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "anyOf",
    "allOf",
)
"""Keywords that rewrites make others of, the likeliest culprit first."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """``apply`` makes a schema with one of ``keywords`` an equivalent one without."""

    keywords: frozenset[str]
    apply: Callable[[Schema, Workspace], Schema | bool]
    when: Callable[[Schema, AbstractSet[str]], bool] = lambda schema, ready: True

    def concerns(self, schema: Schema, ready: AbstractSet[str] = frozenset()) -> bool:
        """Whether ``schema`` is to be rewritten: it has a keyword, and ``when`` holds for it.

        That is also told which regexes are ready for the engine.
        """
        return not self.keywords.isdisjoint(schema) and self.when(schema, ready)
