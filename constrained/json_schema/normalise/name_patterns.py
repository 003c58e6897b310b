"""``patternProperties`` whose patterns may match the same name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from phloem.constrained import strict_json
from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import all_of
from phloem.constrained.json_schema.normalise.workspace import Workspace
from phloem.constrained.regex.complement import matches
from phloem.constrained.regex.product import Matches, told_apart
from phloem.constrained.regex.render import literal

Kinds = Sequence[Sequence[str]]
"""Names that match all regexes of one entry, as every dialect reads them."""

_MOST_PATTERNS = 12
_ANY_NAME: Kinds = [[]]
_FORBIDDEN = strict_json.dumps(False)
_OTHERS = "others"
"""What is asked of names without a pattern stands in ``additionalProperties``."""


def overlap(schema: Schema, ready: AbstractSet[str]) -> bool:
    """Whether a name may match two patterns of ``patternProperties``."""
    patterns = schema["patternProperties"]
    if len(patterns) > _MOST_PATTERNS or patterns.keys() <= ready:
        return False
    return any(_meet(a, b) for a, b in combinations(patterns, 2))


def rewrite_patterns(case: Schema, workspace: Workspace) -> Schema:
    """``case`` where no name matches two patterns of ``patternProperties``."""
    try:
        return tell_apart(case, _ANY_NAME, workspace)
    except GrammarError as error:
        raise regex_refusal("patternProperties", error, workspace) from None


def tell_apart(case: Schema, kinds: Kinds, workspace: Workspace) -> Schema:
    """``case`` with names of ``kinds`` alone, of which none matches two patterns.

    Nor does a name that is listed match one: the engine would find out too late, after the comma,
    that a pattern leaves no other name.

    Raises:
        GrammarError: a regex is not supported, or there are too many states.
    """
    listed = [name for name in case.get("properties", {}) if is_plain(name)]
    try:
        return _told_apart(case, kinds, listed, workspace)
    except GrammarError:
        if not listed:
            raise
        return _told_apart(case, kinds, [], workspace)


def _told_apart(case: Schema, kinds: Kinds, listed: Sequence[str], workspace: Workspace) -> Schema:
    patterns = case.get("patternProperties", {})
    exact = (*patterns, *([any_literal(listed)] if listed else []))
    narrow = tuple(dict.fromkeys(regex for kind in kinds for regex in kind))

    def group(matched: Matches) -> str | None:
        if len(exact) > len(patterns) and len(patterns) in matched:
            return None
        found = {narrow[index - len(exact)] for index in matched if index >= len(exact)}
        if not any(found.issuperset(kind) for kind in kinds):
            return _FORBIDDEN
        return _asked_together(patterns, matched)

    groups = dict(told_apart(exact, narrow)(group))
    changes: Schema = {
        "properties": dict(case.get("properties", {}))
        | {name: _asked_by_name(case, name, kinds) for name in listed}
    }
    if groups.pop(_OTHERS, None) is None:
        changes["additionalProperties"] = False
    apart = {regex: json.loads(asked) for asked, regex in groups.items()}
    return with_ready(
        case | {key: value for key, value in changes.items() if value != {}}, apart, workspace
    )


def _asked_together(patterns: Schema, matched: Matches) -> str:
    """What the patterns with the indexes ``matched`` ask, as JSON."""
    found = [schema for index, schema in enumerate(patterns.values()) if index in matched]
    return strict_json.dumps(all_of(found)) if found else _OTHERS


def _asked_by_name(case: Schema, name: str, kinds: Kinds) -> Schema | bool:
    """What is asked of a property that is listed."""
    allowed = any(all(matches(regex, name) for regex in kind) for kind in kinds)
    return allowed and asked_of(case, name)


def asked_of(case: Schema, name: str) -> Schema | bool:
    """What ``case`` asks of the property ``name``."""
    patterns = case.get("patternProperties", {})
    found = [schema for pattern, schema in patterns.items() if matches(pattern, name)]
    if name in case.get("properties", {}):
        found.insert(0, case["properties"][name])
    return all_of(found) if found else case.get("additionalProperties", True)


def is_plain(name: str) -> bool:
    """Whether all dialects agree on which patterns ``name`` matches."""
    return name.isascii() and name.isprintable()


def any_literal(texts: Iterable[str]) -> str:
    """A regex for just ``texts``."""
    return f"^(?:{'|'.join(''.join(map(literal, text)) for text in texts)})$"


def regex_refusal(keyword: str, error: GrammarError, workspace: Workspace) -> GrammarError:
    """``error`` about a regex, as one about ``keyword``."""
    unsupported = error.code == "invalid_grammar"
    code = "unsupported_json_schema" if unsupported else error.code
    return workspace.refuse(keyword, error.message, code)


def with_ready(case: Schema, patterns: Schema, workspace: Workspace) -> Schema:
    """``case`` with just these patterns, which are in the engine's syntax."""
    workspace.ready.update(patterns)
    rest = {key: value for key, value in case.items() if key != "patternProperties"}
    return {**rest, "patternProperties": patterns} if patterns else rest


def _meet(a: str, b: str) -> bool:
    try:
        return bool(told_apart((a, b))(lambda matched: len(matched) == 2 or None))
    except GrammarError:
        return False  # the engine can tell, or refuses them
