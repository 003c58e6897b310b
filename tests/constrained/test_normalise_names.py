"""``propertyNames`` and overlapping ``patternProperties``."""

from __future__ import annotations

from typing import Any

import pytest
import regex
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from normalised import NAMES, SIMPLE, check, compiles, objects, properties, walk

from phloem.constrained import GrammarError
from phloem.constrained.regex.product import told_apart

PATTERNS = st.sampled_from(["^a", "b$", "^x-", ".*", "^[a-z]+$", "-", "^.{2}$"])
OF_NAMES = st.one_of(
    st.fixed_dictionaries({"pattern": PATTERNS}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(NAMES), min_size=1, unique=True)}),
    st.fixed_dictionaries({"minLength": st.integers(0, 3)}),
    st.fixed_dictionaries({"maxLength": st.integers(0, 3), "pattern": PATTERNS}),
    st.fixed_dictionaries({"anyOf": st.just([{"pattern": "^x-"}, {"enum": ["a", "zz"]}])}),
    st.booleans(),
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "properties": properties(),
        "patternProperties": st.dictionaries(PATTERNS, SIMPLE, max_size=3),
        "additionalProperties": SIMPLE,
    },
)


@given(schema=OBJECTS, names=OF_NAMES, instances=st.lists(objects(), min_size=4, max_size=8))
@settings(max_examples=60, deadline=None)
def test_names(bench: Bench, schema: Any, names: Any, instances: list[Any]) -> None:
    whole = {**schema, "type": "object", "propertyNames": names}
    if compiles(bench, whole):
        check(bench, whole, instances)
        walk(bench, whole, len(instances))


@given(
    patterns=st.dictionaries(PATTERNS, SIMPLE, min_size=2, max_size=3),
    schema=OBJECTS,
    instances=st.lists(objects(), min_size=4, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_patterns(bench: Bench, patterns: Any, schema: Any, instances: list[Any]) -> None:
    whole = {**schema, "type": "object", "patternProperties": patterns}
    if compiles(bench, whole, "unsupported_json_schema"):
        check(bench, whole, instances)
        walk(bench, whole, len(instances))


def test_names_say_nothing_of_other_types(bench: Bench) -> None:
    check(bench, {"propertyNames": {"pattern": "^a"}}, [1, "b", [{"b": 1}], {"b": 1}, {"a": 1}])


def test_listed_names_keep_what_is_asked_of_them(bench: Bench) -> None:
    schema = {
        "propertyNames": {"enum": ["a", "x-1"]},
        "properties": {"a": {"type": "integer"}, "b": {}},
        "patternProperties": {"^x-": {"type": "null"}},
        "additionalProperties": False,
    }
    check(bench, schema, [{"a": 1}, {"a": ""}, {"x-1": None}, {"x-1": 1}, {"b": 1}, {}])


def test_required_name_that_is_no_name(bench: Bench) -> None:
    with pytest.raises(GrammarError):
        bench.schema({"type": "object", "propertyNames": {"maxLength": 1}, "required": ["ab"]})


@given(st.lists(PATTERNS, min_size=1, max_size=3, unique=True), st.text("abxz-\n", max_size=5))
@settings(max_examples=200, deadline=None)
def test_regexes_told_apart_match_just_one(patterns: list[str], text: str) -> None:
    found = told_apart(tuple(patterns))(lambda matched: matched)
    readable = {kinds: one.replace("(?s:.)", r"[\s\S]") for kinds, one in found.items()}
    kinds = [kinds for kinds, one in readable.items() if _fullmatch(one, text)]
    assert len(kinds) == 1
    for index, pattern in enumerate(patterns):
        exact = pattern.replace("$", r"\Z").replace(".", r"[^\n\r\u2028\u2029]")
        assert (index in kinds[0]) == bool(regex.search(exact, text))


def _fullmatch(pattern: str, text: str) -> bool:
    plain = regex.sub(r"\\x\{([0-9a-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
    return regex.fullmatch(plain.removeprefix("^").removesuffix("$"), text) is not None
