"""Exact rewrites of what the engine refuses into what it enforces.

`normalise` runs in `admit`, on the schema as sent, before what is left is checked against the
keywords that the engine enforces. A schema without any keyword of a rewrite passes untouched.

1. `settle` writes the document anew as 2020-12: names for what ``$ref`` leads to, no annotations.
2. A schema that holds a keyword of a rewrite is rewritten, at its own level first:
   a. `LOGIC` brings its in-place keywords (``not``, ``if``, ``oneOf`` ...) to ``anyOf`` and
      ``allOf``, in the order of the tuple, again and again until none applies;
   b. `branches` multiplies these out: a schema becomes ``anyOf`` of *cases*, which hold no
      in-place keyword at all, and whose contradictions are gone;
   c. `SHAPES` rewrites each case, knowing all that holds for the value;
3. then the same is done to the schemas inside (properties, items ...).

To add a rewrite, write a function that takes a schema and the `Workspace` and returns an equivalent
schema without its keyword (or true, or false), and list it with its keywords: in `LOGIC` if it is
about schemas that apply to the same value, or must see them as they were written; in `SHAPES` if it
is about objects, arrays, strings or numbers. What it returns is rewritten again, so it may use any
keyword that another rewrite removes. Schemas are values: never change one in place. What cannot
be said exactly is `Workspace.refuse`d. A keyword that may stand twice in a conjunction needs an
entry in `conjunction.MERGES`, its negation one in `violations.VIOLATIONS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema import patterns
from phloem.constrained.json_schema.keywords import APPLICATORS, Schema, says_nothing
from phloem.constrained.json_schema.normalise import unevaluated
from phloem.constrained.json_schema.normalise.cases import rewrite_dependencies, rewrite_if
from phloem.constrained.json_schema.normalise.children import children
from phloem.constrained.json_schema.normalise.counting import rewrite_counted
from phloem.constrained.json_schema.normalise.exclusions import (
    rewrite_not_enum,
    rewrite_not_format,
    rewrite_not_multiple,
    rewrite_not_pattern,
    rewrite_not_unique,
)
from phloem.constrained.json_schema.normalise.exclusive import rewrite_one_of
from phloem.constrained.json_schema.normalise.lowering import lower
from phloem.constrained.json_schema.normalise.name_patterns import overlap, rewrite_patterns
from phloem.constrained.json_schema.normalise.names import rewrite_names
from phloem.constrained.json_schema.normalise.negation import rewrite_not
from phloem.constrained.json_schema.normalise.prune import prune
from phloem.constrained.json_schema.normalise.recursion import recursive
from phloem.constrained.json_schema.normalise.settle import settle
from phloem.constrained.json_schema.normalise.sizes import is_sized, rewrite_size
from phloem.constrained.json_schema.normalise.witnesses import rewrite_some_property
from phloem.constrained.json_schema.normalise.workspace import ROOT, Rewrite
from phloem.constrained.json_schema.positions import Position
from phloem.constrained.limits import Limits

LOGIC: tuple[Rewrite, ...] = (
    Rewrite(unevaluated.KEYWORDS, unevaluated.rewrite_unevaluated),
    Rewrite(frozenset({"if", "then", "else"}), rewrite_if),
    Rewrite(
        frozenset({"dependencies", "dependentRequired", "dependentSchemas"}), rewrite_dependencies
    ),
    Rewrite(frozenset({"not"}), rewrite_not),
    Rewrite(frozenset({"oneOf"}), rewrite_one_of),
)
"""Rewrites of schemas as they are written."""

SHAPES: tuple[Rewrite, ...] = (
    Rewrite(frozenset({"not multipleOf"}), rewrite_not_multiple),
    Rewrite(frozenset({"not enum"}), rewrite_not_enum),
    Rewrite(frozenset({"not pattern"}), rewrite_not_pattern),
    Rewrite(frozenset({"not format"}), rewrite_not_format),
    Rewrite(frozenset({"not uniqueItems"}), rewrite_not_unique),
    Rewrite(frozenset({"some property"}), rewrite_some_property),
    Rewrite(frozenset({"contains", "counted"}), rewrite_counted),
    Rewrite(frozenset({"propertyNames"}), rewrite_names),
    Rewrite(frozenset({"patternProperties"}), rewrite_patterns, overlap),
    Rewrite(frozenset({"minProperties", "maxProperties"}), rewrite_size, is_sized),
)
"""Rewrites of cases."""

_KEYWORDS = frozenset(word for rewrite in (*LOGIC, *SHAPES) for word in rewrite.keywords)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A document after all rewrites.

    Attributes:
        schema: equivalent to the one given, in 2020-12.
        pointers: where each schema in it comes from, by its id.
        ready: regexes that are already in the engine's syntax.
        warnings: what is not generated, for people to read.
    """

    schema: Schema
    pointers: Mapping[int, str]
    ready: frozenset[str]
    warnings: tuple[str, ...]


def normalise(positions: Sequence[Position], limits: Limits) -> Normalised | None:
    """The schema at ``positions``, the root first, rewritten; None if no rewrite applies.

    Raises:
        GrammarError: a keyword cannot be rewritten exactly, or the result would be too large.
    """
    concerned = any(_concerns(position.schema) for position in positions)
    if not concerned and not any(map(_refers_and_more, positions)):
        return None
    workspace = settle(positions, LOGIC)
    if not concerned and not recursive(workspace.definitions):
        return None
    for position in positions:
        patterns.check(position.pointer, position.schema, limits)
    try:
        definitions = prune(lower(workspace, SHAPES), workspace)
    except RecursionError:
        raise GrammarError("the schema is nested too deep", code="grammar_too_complex") from None
    schema = _document(definitions)
    pointers = {
        id(part): workspace.place_of(part).pointer
        for part in (schema, *(inside for one in definitions.values() for inside in _all(one)))
    }
    warnings = tuple(dict.fromkeys(workspace.warnings))
    return Normalised(schema, pointers, frozenset(workspace.ready), warnings)


def _concerns(schema: Schema) -> bool:
    if not any(key in _KEYWORDS and not says_nothing(key, schema) for key in schema):
        return False
    return any(rewrite.concerns(schema) for rewrite in (*LOGIC, *SHAPES))


def _refers_and_more(position: Position) -> bool:
    """Whether a schema asks for what it refers to, and may ask for something else."""
    schema = position.schema
    more = len(schema.keys() & APPLICATORS.keys()) > 1
    return "allOf" in schema or (more and not schema.keys().isdisjoint({"$ref", "anyOf"}))


def _document(definitions: Mapping[str, Schema | bool]) -> Schema:
    root = definitions[ROOT]
    if root is False:
        raise GrammarError("nothing satisfies this schema", pointer=ROOT)
    named = {name: schema for name, schema in definitions.items() if name != ROOT}
    document = root if isinstance(root, dict) else {}
    return {**document, "$defs": named} if named else document


def _all(schema: Schema | bool) -> Iterator[Schema]:
    if isinstance(schema, dict):
        yield schema
        for child in children(schema):
            yield from _all(child)
