"""``some property``: objects that have a property of some kind, whatever its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.branches import cases, is_nothing
from phloem.constrained.json_schema.normalise.compose import any_of, both
from phloem.constrained.json_schema.normalise.literals import Witness
from phloem.constrained.json_schema.normalise.objects import NAME_KEYWORDS, property_of
from phloem.constrained.json_schema.normalise.workspace import Workspace
from phloem.constrained.regex.complement import matches

_MOST_PRESENCES = 4
"""Optional properties whose presence is told apart, in two to the power of as many cases."""


def rewrite_some_property(case: Schema, workspace: Workspace) -> Schema | bool:
    """One case for each named property that may be it, and some for all others.

    Where the others cannot be told, they are left out if a named one may be it.
    """
    witness, *others = case["some property"]
    rest = {key: value for key, value in case.items() if key != "some property"}
    if others:
        rest["some property"] = others
    if any(NAME_KEYWORDS & part.keys() for part in case.get("allOf", ())):
        raise workspace.indescribable("properties", "its properties are described twice")
    named = dict.fromkeys([*case.get("properties", ()), *case.get("required", ())])
    options = [
        both(rest, {"required": [name], "properties": {name: witness.value}})
        for name in named
        if _fits(name, witness, workspace)
    ]
    if not _only_named(rest, witness, workspace):
        names = list(dict.fromkeys([*named, *witness.besides]))
        unnamed = _unnamed(rest, witness, names, workspace)
        if unnamed is not None:
            options += unnamed
        elif options:
            workspace.warn("properties that nothing names are not generated where one must differ")
        else:
            raise workspace.indescribable(
                "additionalProperties", "some property must differ from others"
            )
    return any_of(options)


def _only_named(rest: Schema, witness: Witness, workspace: Workspace) -> bool:
    """Whether no property without a name of its own may be it."""
    patterns = rest.get("patternProperties", {})
    found = [schema for pattern, schema in patterns.items() if pattern not in witness.apart]
    found.append(rest.get("additionalProperties", True))
    return all(is_nothing(both(schema, witness.value), workspace) for schema in found)


def _fits(name: str, witness: Witness, workspace: Workspace) -> bool:
    """Whether ``name`` is one of the names."""
    if name in witness.besides:
        return False
    try:
        if witness.within is not None and not matches(witness.within, name):
            return False
        if any(matches(pattern, name) for pattern in witness.apart):
            return False
    except GrammarError as error:
        raise workspace.indescribable("patternProperties", error.message) from None
    if witness.name is True:
        return True
    found = cases(both({"enum": [name]}, witness.name), workspace)
    if any(one.keys() != {"enum"} for one in found):
        raise workspace.indescribable("propertyNames", "a name cannot be told to be one of those")
    return bool(found)


def _unnamed(
    rest: Schema, witness: Witness, names: Sequence[str], workspace: Workspace
) -> list[Schema | bool] | None:
    """Cases where the property is none of ``names``; None if they cannot be described.

    The engine can count the properties without names if it knows of the others whether they are
    there. Those whose name matches a regex of no interest are left out.
    """
    if witness.name is not True or witness.within is not None or witness.value not in (True, {}):
        return None
    if not rest.get("patternProperties", {}).keys() <= set(witness.apart):
        return None
    optional = [name for name in names if name not in rest.get("required", ())]
    possible = [name for name in optional if property_of(rest, name) is not False]
    if witness.apart or len(possible) > _MOST_PRESENCES:
        workspace.warn("most objects where some property must differ are not generated")
    options = []
    for there in _presences(possible):
        shape: Schema = {"minProperties": len(rest.get("required", ())) + len(there) + 1}
        shape["required"] = there
        shape["properties"] = dict.fromkeys((name for name in optional if name not in there), False)
        shape["patternProperties"] = dict.fromkeys(witness.apart, False)
        options.append(both(rest, {key: value for key, value in shape.items() if value}))
    return options


def _presences(names: Sequence[str]) -> Iterator[list[str]]:
    """Which of ``names`` may be there; of many, at most one at a time."""
    if len(names) > _MOST_PRESENCES:
        yield from ([], *([name] for name in names))
        return
    for presences in product((True, False), repeat=len(names)):
        yield [name for name, present in zip(names, presences, strict=True) if present]
