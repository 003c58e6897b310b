"""Regexes for what other regexes do not match, and for every text but a few."""

from __future__ import annotations

import re

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.constrained import GrammarError
from phloem.constrained.regex.code_points import EVERY, partition, read, without, write
from phloem.constrained.regex.complement import matches, none_of
from phloem.constrained.regex.literals import none_of_literals

TEXTS = st.text("abc1 é\n_xß٣", max_size=6)
_ATOMS = ["a", "b", "[ab]", "[^a]", r"\d", r"\W", ".", "é", r"\s", "(?:ab|c)", r"\x61"]
_PARTS = st.builds(
    str.__add__, st.sampled_from(_ATOMS), st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}"])
)
_SEQUENCES = st.lists(_PARTS, max_size=3).map("".join)
PATTERNS = st.builds(
    lambda start, options, end: f"{start}(?:{'|'.join(options)}){end}",
    st.sampled_from(["", "^"]),
    st.lists(_SEQUENCES, min_size=1, max_size=2),
    st.sampled_from(["", "$"]),
)


def found(pattern: str, text: str) -> bool:
    """Whether there is a match if each shorthand stands for all that any dialect takes it for."""
    return bool(re.search(pattern.replace(r"\W", "[^0-9A-Za-z_]"), text))


@given(patterns=st.lists(PATTERNS, min_size=1, max_size=2), texts=st.lists(TEXTS, max_size=20))
@settings(max_examples=200, deadline=None)
def test_none_of_is_what_python_finds_nowhere(patterns: list[str], texts: list[str]) -> None:
    try:
        other = none_of(tuple(patterns))
    except GrammarError as error:
        assert error.code == "grammar_too_complex"
        return
    for text in texts:
        apart = not any(found(pattern, text) for pattern in patterns)
        assert (other is not None and matches(other, text)) == apart, (patterns, other, text)


@given(pattern=PATTERNS, texts=st.lists(TEXTS, max_size=20))
@settings(max_examples=200, deadline=None)
def test_matches_as_ecmascript_does(pattern: str, texts: list[str]) -> None:
    ecma = pattern.replace(".", r"[^\n\r\u2028\u2029]").replace("$", r"\Z")
    for text in texts:
        assert matches(pattern, text) == bool(re.search(ecma, text, re.ASCII)), (pattern, text)


@given(words=st.lists(TEXTS, max_size=12, unique=True), texts=st.lists(TEXTS, max_size=12))
@settings(max_examples=100, deadline=None)
def test_none_of_literals(words: list[str], texts: list[str]) -> None:
    other = none_of_literals(words)
    for text in words + texts:
        assert matches(other, text) == (text not in words), (words, text)


def test_long_literals_stay_within_what_the_engine_reads(bench: Bench) -> None:
    words = ["a" * 400, "a" * 200 + "b" * 200, "a" * 40]
    assert len(none_of_literals(words)) < 40 * sum(map(len, words))
    grammar = bench.schema({"type": "string", "not": {"enum": words}})
    assert not any(bench.accepts(grammar, f'"{word}"') for word in words)
    assert all(bench.accepts(grammar, f'"{word}x"') for word in words)


def test_the_empty_complement_is_none() -> None:
    assert none_of(("a*",)) is None


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){12}", "^(?:a{1,200}b){1,9}$", "(?i)a"])
def test_what_has_no_small_complement_is_refused(pattern: str) -> None:
    with pytest.raises(GrammarError):
        none_of((pattern,))


@pytest.mark.parametrize("rust", ["a", r"\x{e9}", "[a-c]", r"[^\x{a}]", r"[\p{L}_]", r"[^\p{Nd}]"])
def test_classes_are_written_as_they_are_read(rust: str) -> None:
    ranges = read(rust)
    named = {ranges: rust}
    assert read(write(ranges, named)) == ranges
    assert read(write(without(ranges), named)) == without(ranges)
    assert len(write(without(ranges), named)) < 40


def test_a_partition_covers_every_character_once() -> None:
    sets = [read("[a-m]"), read("[k-z]"), read(r"[^\x{a}]")]
    parts = partition(sets)
    assert sum(high - low + 1 for part in parts.values() for low, high in part) == sum(
        high - low + 1 for low, high in EVERY
    )
    assert parts[0b111] == ((ord("k"), ord("m")),)
