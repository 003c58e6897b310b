"""What two schemas say of the properties of an object, as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import all_of, both
from phloem.constrained.json_schema.normalise.workspace import Workspace
from phloem.constrained.regex.complement import matches
from phloem.constrained.regex.product import Matches, told_apart
from phloem.constrained.regex.render import literal

NAME_KEYWORDS = frozenset({"properties", "patternProperties", "additionalProperties"})


def property_of(case: Schema, name: str) -> Schema | bool:
    """What ``case`` asks of the property ``name``.

    Raises:
        GrammarError: a pattern for names is not supported.
    """
    found = [case["properties"][name]] if name in case.get("properties", ()) else []
    patterns = case.get("patternProperties", {})
    found += [schema for pattern, schema in patterns.items() if matches(pattern, name)]
    return all_of(found) if found else case.get("additionalProperties", True)


def both_objects(a: Schema, b: Schema, workspace: Workspace) -> Schema | None:
    """`NAME_KEYWORDS` for what both ask; None where these cannot say it.

    The names of ``a`` come first: their order is the order of generation.
    """
    if "additionalProperties" not in a and "additionalProperties" not in b:
        return {
            keyword: _both_maps(a.get(keyword, {}), b.get(keyword, {}))
            for keyword in ("properties", "patternProperties")
            if keyword in a or keyword in b
        }
    try:
        merged = dict(_both_named(a, b))
        patterns = _both_patterns(a, b, list(merged), workspace)
    except GrammarError:
        return None
    rest = both(a.get("additionalProperties", True), b.get("additionalProperties", True))
    found: Schema = {"properties": merged} if merged else {}
    if patterns:
        found["patternProperties"] = patterns
    return found if rest is True else {**found, "additionalProperties": rest}


def _both_maps(a: Schema, b: Schema) -> Schema:
    merged = {**a, **{name: schema for name, schema in b.items() if name not in a}}
    return merged | {name: both(a[name], b[name]) for name in a.keys() & b.keys()}


def _both_named(a: Schema, b: Schema) -> Iterator[tuple[str, Schema | bool]]:
    for name in dict.fromkeys([*a.get("properties", ()), *b.get("properties", ())]):
        yield name, both(property_of(a, name), property_of(b, name))


def _both_patterns(
    a: Schema, b: Schema, names: list[str], workspace: Workspace
) -> Mapping[str, Schema | bool]:
    """What is asked of the properties without a name of their own that match a pattern.

    A pattern stays as it is if the other side asks nothing more of what matches it; else the
    patterns are told apart from each other and from ``names``.
    """
    mine, yours = a.get("patternProperties", {}), b.get("patternProperties", {})
    if (b.get("additionalProperties", True) is True or mine.keys() <= yours.keys()) and (
        a.get("additionalProperties", True) is True or yours.keys() <= mine.keys()
    ):
        return _both_maps(mine, yours)
    patterns = list(mine | yours)
    listed = f"^(?:{'|'.join(''.join(map(literal, name)) for name in names)})$"
    exact = (*patterns, listed) if names else tuple(patterns)

    def group(matched: Matches) -> Matches | None:
        return matched if matched and len(patterns) not in matched else None

    regexes: Mapping[Any, str] = told_apart(exact)(group)
    workspace.ready.update(regexes.values())
    found: Schema = {}
    for matched, regex in regexes.items():
        own = [patterns[index] for index in sorted(matched)]
        found[regex] = both(_of_match(a, own), _of_match(b, own))
    return found


def _of_match(case: Schema, matched: list[str]) -> Schema | bool:
    """What ``case`` asks of a property without a name of its own that matches ``matched``."""
    patterns = case.get("patternProperties", {})
    found = [patterns[pattern] for pattern in matched if pattern in patterns]
    return all_of(found) if found else case.get("additionalProperties", True)
