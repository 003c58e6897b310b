"""``propertyNames``: what names the properties of an object may have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.branches import cases
from phloem.constrained.json_schema.normalise.compose import both
from phloem.constrained.json_schema.normalise.name_patterns import (
    any_literal,
    asked_of,
    is_plain,
    regex_refusal,
    tell_apart,
    with_ready,
)
from phloem.constrained.json_schema.normalise.objects import NAME_KEYWORDS
from phloem.constrained.json_schema.normalise.workspace import Workspace
from phloem.constrained.regex import parse, render
from phloem.constrained.regex.charset import COMMON
from phloem.constrained.regex.complement import matches, none_of
from phloem.constrained.regex.extent import longest_match
from phloem.constrained.regex.literals import none_of_literals
from phloem.constrained.regex.product import told_apart

_OF_NAMES = frozenset(
    {
        "type",
        "enum",
        "pattern",
        "minLength",
        "maxLength",
        "format",
        "not enum",
        "not pattern",
    }
)


def rewrite_names(case: Schema, workspace: Workspace) -> Schema | bool:
    """``propertyNames`` by patterns of names that no property may have, or by listing the names."""
    rest = {key: value for key, value in case.items() if key != "propertyNames"}
    if NAME_KEYWORDS & {key for part in case.get("allOf", ()) for key in part}:
        raise workspace.refuse("propertyNames", "its properties are described twice")
    names = cases(both(case["propertyNames"], {"type": "string"}), workspace)
    for name in names:
        if not name.keys() <= _OF_NAMES:
            raise workspace.refuse("propertyNames", "names of that kind cannot be described")
        if "format" in name:
            workspace.warn(f"the format {name['format']!r} is not enforced for names")
    try:
        names = list(_possible(names))
        if all("enum" in name for name in names):
            return _closed(rest, [text for name in names for text in name["enum"]])
        return _barred(rest, names, workspace)
    except GrammarError as error:
        raise regex_refusal("propertyNames", error, workspace) from None


def _possible(names: Iterable[Schema]) -> Iterator[Schema]:
    """Those of ``names`` that allow any, with what their lists come to."""
    for name in names:
        if "enum" in name:
            listed = list(_listed(name))
            if listed:
                yield {"enum": listed}
        elif none_of(tuple(name.get("not pattern", ()))) is not None:
            yield name


def _listed(name: Schema) -> Iterator[str]:
    """The names of the ``enum`` of ``name`` that its patterns leave."""
    patterns = [(text, False) for text in name.get("not pattern", ())]
    if "pattern" in name:
        patterns.append((name["pattern"], True))
    for text in name["enum"]:
        if patterns and not is_plain(text):
            raise GrammarError("dialects may differ on whether a name matches a pattern")
        if all(matches(pattern, text) is wanted for pattern, wanted in patterns):
            yield text


def _closed(case: Schema, names: Sequence[str]) -> Schema:
    """``case`` with the properties ``names`` alone."""
    known = case.get("properties", {})
    ordered = [name for name in known if name in names]
    ordered += (name for name in names if name not in known)
    return {
        **{key: value for key, value in case.items() if key != "patternProperties"},
        "properties": {name: asked_of(case, name) for name in ordered},
        "additionalProperties": False,
    }


def _barred(case: Schema, names: Sequence[Schema], workspace: Workspace) -> Schema:
    """``case`` where all that is none of ``names`` is forbidden."""
    kinds = [_regexes(name) for name in names]
    longest = max(map(len, case.get("properties", ())), default=0)
    if len(names) > 1 or "patternProperties" in case or _longest(kinds[0]) <= longest:
        return tell_apart(case, kinds, workspace)
    if len(kinds[0]) == 1 and _is_plain(case):
        return _allowed(case, kinds[0][0], workspace)
    barred = "|".join(_violations(names[0]))
    return with_ready(case, {barred: False} if barred else {}, workspace)


def _longest(kind: Sequence[str]) -> float:
    return min(map(longest_match, kind), default=math.inf)


def _regexes(name: Schema) -> list[str]:
    """Regexes that all match just the names ``name`` allows."""
    if "enum" in name:
        return [any_literal(name["enum"])]
    found = _patterns(name)
    if "minLength" in name or "maxLength" in name:
        found.append(f"^(?s:.){{{name.get('minLength', 0)},{name.get('maxLength', '')}}}$")
    return found


def _patterns(name: Schema) -> list[str]:
    """Regexes that all match what ``name`` allows, apart from its lengths."""
    found = [name["pattern"]] if "pattern" in name else []
    if "not enum" in name:
        found.append(none_of_literals(name["not enum"]))
    if "not pattern" in name:
        others = none_of(tuple(name["not pattern"]))
        if others is None or "&&" in others or "[[" in others:
            raise GrammarError("the names without a match cannot be described")
        found.append(others)
    return found


def _is_plain(case: Schema) -> bool:
    """Whether the properties of ``case`` may also be asked for what all others are."""
    named = case.get("properties", {})
    return all(map(is_plain, named)) and (
        not named or case.get("additionalProperties", True) in (True, {}, False)
    )


def _allowed(case: Schema, regex: str, workspace: Workspace) -> Schema:
    """``case``, which is plain, with names that match ``regex`` alone."""
    named = {
        name: schema if matches(regex, name) else False
        for name, schema in case.get("properties", {}).items()
    }
    rest = case.get("additionalProperties", True)
    found = {**case, "additionalProperties": False} | ({"properties": named} if named else {})
    patterns = {} if rest is False else {render(parse(regex, shorthands=COMMON)): rest}
    return with_ready(found, patterns, workspace)


def _violations(name: Schema) -> Iterator[str]:
    """Regexes of which those names match at least one that ``name`` does not allow."""
    for regex in _patterns(name):
        yield from told_apart((), (regex,))(lambda matched: not matched or None).values()
    if name.get("minLength", 0) > 0:
        yield f"^(?s:.){{0,{name['minLength'] - 1}}}$"
    if "maxLength" in name:
        yield f"^(?s:.){{{name['maxLength'] + 1},}}$"
