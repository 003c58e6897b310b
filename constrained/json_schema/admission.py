"""From a schema's text to one that the engine enforces exactly, or a refusal that says where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from phloem.constrained import strict_json
from phloem.constrained.errors import ErrorCode, GrammarError
from phloem.constrained.guards.outline import Outline
from phloem.constrained.json_schema import (
    dialect,
    distinct,
    escapes,
    formats,
    metaschemas,
    numbers,
    patterns,
)
from phloem.constrained.json_schema.conjunctions import check_conjunctions
from phloem.constrained.json_schema.keywords import REFUSED, Schema, says_nothing
from phloem.constrained.json_schema.loops import check_finite, check_loops
from phloem.constrained.json_schema.normalise import normalise
from phloem.constrained.json_schema.positions import Position, reachable
from phloem.constrained.limits import DEFAULT_LIMITS, Limits
from phloem.constrained.strict_json import pointer_to

_ANNOTATIONS = ("x-guidance", "$dynamicAnchor", "$recursiveAnchor")
"""Without meaning for us, but the engine would act on them or stumble."""

_SPLITTING = ("const", "enum", "allOf", "anyOf", "oneOf", "$ref")
"""The engine compiles the keywords before, between and after these apart from each other."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A schema ready for the engine.

    Attributes:
        schema: the document, rewritten without a change of meaning.
        unicode_escapes: whether strings may spell printable characters as ``\\uXXXX``.
        distinct: where items or names must differ, which the engine does not see to.
        warnings: what is not enforced or not generated, for people to read.
    """

    schema: Schema
    unicode_escapes: bool
    distinct: Outline | None
    warnings: tuple[str, ...]


def admit(text: str, limits: Limits = DEFAULT_LIMITS) -> Admitted:
    """Check ``text`` and prepare it.

    Raises:
        GrammarError: with the JSON pointer of what is malformed or cannot be enforced.
    """
    document = _read(text, limits)
    positions = _well_formed(document, limits)
    normalised = normalise(positions, limits)
    schema, ready = document, frozenset[str]()
    if normalised is not None:
        schema, ready = normalised.schema, normalised.ready
        positions = _traced(reachable(schema, dialect.of(schema)), normalised.pointers)
    for position in positions:
        _check_enforced(position)
    check_finite(positions)
    check_conjunctions(positions)
    numbers.check_multiples(positions)
    distinct.limit_items(positions)
    outline = distinct.outline_of(positions, ready)
    numbers.part_bounds(positions)
    warnings = [] if dialect.is_known(document) else ["$schema is not known: read as 2020-12"]
    if normalised is not None:
        warnings += normalised.warnings
    for position in positions:
        warnings += _rewrite(position, limits, ready)
    return Admitted(schema, escapes.allow_unicode(positions), outline, tuple(warnings))


def _well_formed(document: Schema, limits: Limits) -> list[Position]:
    """The schemas of ``document``, as far as that can be said before any rewriting."""
    spoken = dialect.of(document)
    metaschemas.embed(document, spoken)
    positions = reachable(document, spoken)
    for position in positions:
        dialect.check_keywords(position.pointer, position.schema, spoken)
        numbers.settle_counts(position.pointer, position.schema)
        _check_sizes(position, limits)
    parted = [patterns.lay_out(position.schema, limits) for position in positions]
    if any(parted):
        positions = reachable(document, spoken)
    _check_enums(positions, limits)
    check_loops(positions)
    return positions


def _traced(positions: Sequence[Position], pointers: Mapping[int, str]) -> list[Position]:
    """``positions`` in a rewritten document, named by where they come from."""
    return [
        replace(position, pointer=pointers.get(id(position.schema), position.pointer))
        for position in positions
    ]


def _read(text: str, limits: Limits) -> Schema:
    document = strict_json.loads(text, depth=limits.depth)
    if document is True:
        return {}
    if document is False:
        raise GrammarError("the schema is false: nothing satisfies it", pointer="#")
    if not isinstance(document, dict):
        raise GrammarError("a schema must be an object, true or false", pointer="#")
    return document


def _refuse(
    position: Position,
    keyword: str,
    message: str,
    code: ErrorCode = "unsupported_json_schema",
) -> GrammarError:
    return GrammarError(
        message, pointer=pointer_to(position.pointer, keyword), keyword=keyword, code=code
    )


def _check_sizes(position: Position, limits: Limits) -> None:
    for keyword in ("properties", "patternProperties"):
        if len(position.schema.get(keyword, ())) > limits.properties:
            message = f"{keyword!r} at {position.pointer} has more than {limits.properties} entries"
            raise _refuse(position, keyword, message, "grammar_too_complex")


def _check_enums(positions: Sequence[Position], limits: Limits) -> None:
    total = 0
    for position in positions:
        for keyword, value in position.schema.items():
            if keyword not in ("enum", "const"):
                continue
            numbers.check_constants(position.pointer, value, keyword)
            total += len(strict_json.dumps(value).encode())
            if total > limits.enum_bytes:
                message = f"the values of enum and const exceed {limits.enum_bytes} bytes"
                raise _refuse(position, keyword, message, "grammar_too_complex")


def _check_enforced(position: Position) -> None:
    schema = position.schema
    for keyword in schema:
        if keyword in REFUSED and not says_nothing(keyword, schema):
            message = f"{keyword!r} at {position.pointer} cannot be enforced while decoding"
            raise _refuse(position, keyword, message)


def _rewrite(position: Position, limits: Limits, ready: AbstractSet[str]) -> list[str]:
    """Rewrite one schema in place; returns warnings."""
    pointer, schema = position.pointer, position.schema
    unseen = distinct.guarded(schema) | REFUSED.keys() | set(_ANNOTATIONS)
    for keyword in schema.keys() & unseen:
        del schema[keyword]
    if not isinstance(schema.get("items"), list):
        # It speaks of what follows a tuple, and makes the engine read an older dialect.
        schema.pop("additionalItems", None)
    patterns.rewrite(pointer, schema, limits, ready)
    warnings = numbers.narrow_bounds(pointer, schema) + formats.enforce(pointer, schema)
    _gather(schema)
    return warnings


def _gather(schema: Schema) -> None:
    """Bring the keywords that depend on each other together, in place.

    The engine would read ``additionalItems`` apart from ``items``, and so on, if one of
    `_SPLITTING` stood between. They go where ``properties`` stands, which sets the order of keys.
    """
    plain = {key: value for key, value in schema.items() if key not in _SPLITTING}
    place = "properties" if "properties" in schema else next(iter(plain), None)
    gathered: Schema = {}
    for key, value in schema.items():
        if key == place:
            gathered.update(plain)
        elif key in _SPLITTING:
            gathered[key] = value
    schema.clear()
    schema.update(gathered)
