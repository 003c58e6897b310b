"""A schema as the union of cases: schemas without any keyword that applies in place.

In a case the type is a list, ``const`` an ``enum`` and ``contains`` an entry of ``counted``. Apart
from the keywords of JSON Schema it may hold, until `SHAPES` remove them: ``not enum``, ``not
pattern``, ``not format`` and ``not multipleOf``, each a list of what is ruled out; ``counted``, a
list of `Counted`; ``some property``, a list of `Witness`. Its ``allOf`` holds plain schemas that
could not be merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phloem.constrained import strict_json
from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.arrays import item
from phloem.constrained.json_schema.normalise.children import map_children, refers
from phloem.constrained.json_schema.normalise.compose import both
from phloem.constrained.json_schema.normalise.conjunction import MERGES, conjoin
from phloem.constrained.json_schema.normalise.literals import Counted
from phloem.constrained.json_schema.normalise.objects import property_of
from phloem.constrained.json_schema.normalise.tidy import tidy, within
from phloem.constrained.json_schema.normalise.values import distinct, same
from phloem.constrained.json_schema.normalise.workspace import Workspace

IN_PLACE = frozenset({"$ref", "allOf", "anyOf"})
_CONTAINS = frozenset({"contains", "minContains", "maxContains"})
_MOST_CASES = 2_000
_TOO_MANY = "written out case by case it is too large"
_MOST_COMPARED = 40
_DEPTH, _DEPTH_OF_REFERENCES = 8, 2


def cases(schema: Schema | bool, workspace: Workspace) -> list[Schema]:
    """Cases that together allow what ``schema`` does; none if that is nothing.

    Raises:
        GrammarError: there are too many of them.
    """
    if isinstance(schema, bool):
        return [{}] if schema else []
    if id(schema) not in workspace.cases:
        with workspace.at(schema):
            workspace.cases[id(schema)] = schema, _cases(schema, workspace)
    return workspace.cases[id(schema)][1]


def _cases(schema: Schema, workspace: Workspace) -> list[Schema]:
    plain = without_logic(schema, workspace)
    if isinstance(plain, bool):
        return [{}] if plain else []
    found: list[Schema] = [{}]
    for factor in _factors(plain, workspace):
        pairs = ((a, b) for a in found for b in factor)
        found = _union((meet(a, b, workspace) for a, b in pairs), workspace)
    return found


def without_logic(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` rewritten until no rewrite of `LOGIC` applies to it."""
    rewritten: Schema | bool = schema
    while isinstance(rewritten, dict):
        written = rewritten
        rewrite = next((one for one in workspace.logic if one.keywords & written.keys()), None)
        if rewrite is None:
            break
        workspace.spend(1)
        rewritten = rewrite.apply(written, workspace)
    return rewritten


def plain_case(schema: Schema) -> Schema | None:
    """The case for a schema without in-place keywords."""
    case = {key: value for key, value in schema.items() if key not in _CONTAINS}
    if "const" in case:
        value = [case.pop("const")]
        case["enum"] = MERGES["enum"](value, case.get("enum", value))
    if "contains" in schema:
        least = schema.get("minContains", 1)
        counted = Counted(schema["contains"], 0, least, schema.get("maxContains"))
        if counted.least or counted.most is not None:
            case["counted"] = [*case.get("counted", ()), counted]
    return tidy(case)


def _union(found: Iterator[Schema | None], workspace: Workspace) -> list[Schema]:
    options = distinct(case for case in found if case is not None)
    if {} in options:
        return [{}]
    if len(options) > _MOST_COMPARED:
        if len(options) > _MOST_CASES:
            raise workspace.refuse("anyOf", _TOO_MANY, "grammar_too_complex")
        return options
    kept: list[Schema] = []
    for one in options:
        if not any(within(one, other) for other in kept):
            kept = [other for other in kept if not within(other, one)]
            kept.append(one)
    return kept


def _factors(schema: Schema, workspace: Workspace) -> Iterator[list[Schema]]:
    """Lists of cases of which each must be met, in the order of their keywords.

    What is plain stands where ``properties`` does, which sets the order of generation.
    """
    plain = {key: value for key, value in schema.items() if key not in IN_PLACE}
    place = "properties" if "properties" in plain else next(iter(plain), None)
    for keyword, value in schema.items():
        if keyword == "$ref":
            yield cases(workspace.target(value), workspace)
        elif keyword == "allOf":
            yield from (cases(member, workspace) for member in value)
        elif keyword == "anyOf":
            options = (case for option in value for case in cases(option, workspace))
            yield _union(options, workspace)
        elif keyword == place:
            case = plain_case(plain)
            yield [] if case is None else [case]


def meet(a: Schema, b: Schema, workspace: Workspace) -> Schema | None:
    """The case where both cases hold, None if nowhere, as far as is found without looking far."""
    if not a:
        return b
    case = conjoin(a, b, workspace)
    if case is None or "allOf" in case:
        return case
    if "enum" in case:
        return tidy(case | {"enum": [v for v in case["enum"] if _may_hold(v, case, workspace)]})
    inside = {key: case[key] for key in case if key in ("properties", "prefixItems", "items")}
    simpler = map_children(inside, lambda child: _simpler(child, workspace))
    return case if same(inside, simpler) else tidy(case | simpler)


def _simpler(schema: Schema | bool, workspace: Workspace) -> Schema | bool:
    """``schema`` as a single case, or false, if it is a conjunction that comes to that."""
    if isinstance(schema, bool) or schema.keys() != {"allOf"}:
        return schema
    if is_nothing(schema, workspace):
        return False
    found = _known_cases(schema, workspace)
    single = found is not None and len(found) == 1 and not refers(schema)
    return found[0] if found and single else schema


def _may_hold(value: Any, case: Schema, workspace: Workspace) -> bool:
    """Whether what is inside a constant may satisfy ``case``."""
    if isinstance(value, list):
        inside = [(part, item(case, index)) for index, part in enumerate(value)]
    elif isinstance(value, dict) and "patternProperties" not in case:
        if not value.keys() >= set(case.get("required", ())):
            return False
        inside = [(part, property_of(case, name)) for name, part in value.items()]
    else:
        return True
    wanted = (both({"const": part}, schema) for part, schema in inside)
    return not any(is_nothing(schema, workspace) for schema in wanted)


def is_nothing(schema: Schema | bool, workspace: Workspace) -> bool:
    """Whether ``schema`` is found to allow nothing, without looking far."""
    return _known_cases(schema, workspace) == []


def _known_cases(schema: Schema | bool, workspace: Workspace) -> list[Schema] | None:
    """The cases of ``schema``, None where it may recur, lies deep or cannot be rewritten."""
    if isinstance(schema, bool):
        return [{}] if schema else []
    key = strict_json.dumps(schema)
    if key not in workspace.known:
        workspace.known[key] = None  # for the same schema inside
        workspace.known[key] = _cases_inside(schema, workspace)
    return workspace.known[key]


def _cases_inside(schema: Schema, workspace: Workspace) -> list[Schema] | None:
    if workspace.depth >= (_DEPTH_OF_REFERENCES if refers(schema) else _DEPTH):
        return None
    workspace.depth += 1
    try:
        return cases(schema, workspace)
    except GrammarError as error:
        if error.code != "unsupported_json_schema":
            raise
        return None
    finally:
        workspace.depth -= 1
