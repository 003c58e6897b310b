"""How a single keyword of a case is violated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import negation
from phloem.constrained.json_schema.normalise.literals import Counted, Witness
from phloem.constrained.json_schema.normalise.values import ANYTHING, NUMBERS, atoms_of, typed

Violations = Iterator[Schema | bool]


def _not_type(case: Schema) -> Violations:
    yield typed({}, ANYTHING - atoms_of(case))


def _listed(keyword: str, atom: str | None) -> Callable[[Schema], Violations]:
    """Ruling out by a keyword for it."""

    def violations(case: Schema) -> Violations:
        values = case[keyword] if keyword == "enum" else [case[keyword]]
        yield _of(case, atom, {f"not {keyword}": values})

    return violations


def _unlisted(keyword: str, atom: str | None) -> Callable[[Schema], Violations]:
    """Being what is ruled out."""

    def violations(case: Schema) -> Violations:
        values = case[f"not {keyword}"]
        for value in [values] if keyword == "enum" else values:
            yield _of(case, atom, {keyword: value})

    return violations


def _of(case: Schema, atom: str | None, violation: Schema) -> Schema:
    """``violation`` for the values of a type, as far as ``case`` allows that at all."""
    if atom is None:
        return violation
    atoms = NUMBERS if atom == "number" else frozenset({atom})
    return typed(violation, atoms & atoms_of(case))


def _beyond(
    keyword: str, atom: str, opposite: str, change: int = 0
) -> Callable[[Schema], Violations]:
    """Beyond a bound."""

    def violations(case: Schema) -> Violations:
        bound = case[keyword] + change
        if bound >= 0 or atom == "number":
            yield _of(case, atom, {opposite: bound})

    return violations


def _missing(case: Schema) -> Violations:
    for name in case["required"]:
        if case.get("properties", {}).get(name, True) in (True, {}):
            yield _of(case, "object", {"properties": {name: False}})


def _wrong_property(case: Schema) -> Violations:
    for name, schema in case["properties"].items():
        if schema in (True, {}):
            continue
        wrong: Schema = {"properties": {name: negation(schema)}}
        if name not in case.get("required", ()):
            wrong["required"] = [name]
        yield _of(case, "object", wrong)


def _wrong_match(case: Schema) -> Violations:
    for pattern, schema in case["patternProperties"].items():
        yield _some(case, Witness(negation(schema), within=pattern))


def _wrong_rest(case: Schema) -> Violations:
    besides = tuple(case.get("properties", ()))
    apart = tuple(case.get("patternProperties", ()))
    value = negation(case["additionalProperties"])
    yield _some(case, Witness(value, besides=besides, apart=apart))


def _wrong_name(case: Schema) -> Violations:
    yield _some(case, Witness(True, name=negation(case["propertyNames"])))


def _some(case: Schema, witness: Witness) -> Schema | bool:
    if witness.value is False:
        return False
    return _of(case, "object", {"some property": [witness]})


def _no_witness(case: Schema) -> Violations:
    for value, name, within, besides, apart in case["some property"]:
        if name is not True and within is not None:
            raise ValueError("no rewrite asks for a property by a schema and a regex at once")
        wrong: Schema = {} if name is True else {"propertyNames": negation(name)}
        if within is not None:
            wrong["patternProperties"] = {within: negation(value)}
        elif name is True:
            wrong["properties"] = dict.fromkeys(besides, True)
            wrong["patternProperties"] = dict.fromkeys(apart, True)
            wrong["additionalProperties"] = negation(value)
        yield _of(case, "object", wrong)


def _repeated(case: Schema) -> Violations:
    if case["uniqueItems"]:
        yield _of(case, "array", {"not uniqueItems": [True]})


def _wrong_listed(case: Schema) -> Violations:
    for index, schema in enumerate(case["prefixItems"]):
        wrong = [*[True] * index, negation(schema)]
        yield _of(case, "array", {"prefixItems": wrong, "minItems": index + 1})


def _wrong_item(case: Schema) -> Violations:
    start = len(case.get("prefixItems", ()))
    if case["items"] is False:
        yield _of(case, "array", {"minItems": start + 1})
    else:
        yield _of(case, "array", {"counted": [Counted(negation(case["items"]), start)]})


def _wrong_count(case: Schema) -> Violations:
    for schema, start, least, most in case["counted"]:
        if least:
            yield _of(case, "array", {"counted": [Counted(schema, start, 0, least - 1)]})
        if most is not None:
            yield _of(case, "array", {"counted": [Counted(schema, start, most + 1)]})


VIOLATIONS: Mapping[str, Callable[[Schema], Violations]] = {
    "type": _not_type,
    "enum": _listed("enum", None),
    "minimum": _beyond("minimum", "number", "exclusiveMaximum"),
    "maximum": _beyond("maximum", "number", "exclusiveMinimum"),
    "exclusiveMinimum": _beyond("exclusiveMinimum", "number", "maximum"),
    "exclusiveMaximum": _beyond("exclusiveMaximum", "number", "minimum"),
    "multipleOf": _listed("multipleOf", "number"),
    "minLength": _beyond("minLength", "string", "maxLength", -1),
    "maxLength": _beyond("maxLength", "string", "minLength", 1),
    "pattern": _listed("pattern", "string"),
    "format": _listed("format", "string"),
    "required": _missing,
    "properties": _wrong_property,
    "patternProperties": _wrong_match,
    "additionalProperties": _wrong_rest,
    "propertyNames": _wrong_name,
    "minProperties": _beyond("minProperties", "object", "maxProperties", -1),
    "maxProperties": _beyond("maxProperties", "object", "minProperties", 1),
    "prefixItems": _wrong_listed,
    "items": _wrong_item,
    "minItems": _beyond("minItems", "array", "maxItems", -1),
    "maxItems": _beyond("maxItems", "array", "minItems", 1),
    "counted": _wrong_count,
    "uniqueItems": _repeated,
    "not enum": _unlisted("enum", None),
    "not pattern": _unlisted("pattern", "string"),
    "not format": _unlisted("format", "string"),
    "not multipleOf": _unlisted("multipleOf", "number"),
    "some property": _no_witness,
}
"""How a keyword of a case is violated, by values of the types that the case allows."""
