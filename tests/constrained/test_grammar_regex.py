"""Regexes: one reading that every dialect shares, matched whole."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.constrained import GrammarError, GrammarSpec, check

MATCHES = [
    ("^abc$", ["abc"], ["", "abcd", "^abc$"]),
    ("^a|b$", ["a", "b"], ["ab", "^a"]),
    ("(^a|b)$", ["a", "b"], ["ab"]),
    ("^^a$$", ["a"], []),
    ("(?:^a)?b", ["ab", "b"], ["a"]),
    ("", [""], ["a"]),
    ("a||b", ["", "a", "b"], ["ab"]),
    ("a{2}b{1,2}c{0,}", ["aab", "aabbccc"], ["ab", "aabbb"]),
    ("{a}", ["{a}"], ["a"]),
    ("a{", ["a{"], []),
    ('"[^"]*?"', ['"a"', '""'], ['"a', '"""']),
    (r"[\w.-]+", ["a-.b_9"], ["é", ""]),
    (r"[\w-.]", ["-", ".", "a"], ["+"]),
    (r"[a-\d]", ["a", "-", "5"], ["b"]),
    ("[a&&b]", ["a", "&", "b"], ["c"]),
    ("[a[b]", ["[", "a", "b"], ["]"]),
    ("[^a[]", ["b", "é", "\n"], ["a", "["]),
    (r"[\]\\^-]", ["]", "\\", "^", "-"], ["a"]),
    (r"[\b]", ["\b"], ["b"]),
    ("a.b", ["axb", "aéb"], ["a\nb", "a\u2028b"]),
    ("(?s)a.b", ["a\nb"], ["ab"]),
    ("(?s:a.)b.", ["a\nbc"], ["a\nb\n"]),
    ("(?i)straSSe", ["STRASSE", "strasse"], ["straße"]),
    ("(?i:a)b", ["Ab", "ab"], ["AB"]),
    ("(?P<x>a)(?<y>b)(?:c)", ["abc"], []),
    (r"\x41\u0042\U00000043\u{1F600}\ud83d\ude00", ["ABC😀😀"], []),
    (r"\n\t\r\f\v\/\-\"", ['\n\t\r\f\v/-"'], []),
    (r"\d\D\w\W\s\S", ["1aa- a"], ["٣aa- a", "1٣a- a", "1aaé a"]),
    (r"[^\D]+", ["12"], ["٣"]),
    (r"\p{L}+", ["été", "日本"], ["1", "!"]),
    (r"\P{Lu}[\p{Lu}x]", ["aB", "ax"], ["Ab"]),
    ("[à-ÿ ]+", ["é à"], ["e"]),
    ("😀{2}", ["😀😀"], ["😀"]),
]


@pytest.mark.parametrize(("pattern", "accept", "reject"), MATCHES)
def test_matches(bench: Bench, pattern: str, accept: list[str], reject: list[str]) -> None:
    grammar = bench.grammar("regex", pattern)
    assert [text for text in accept if not bench.accepts(grammar, text)] == []
    assert [text for text in reject if bench.accepts(grammar, text)] == []


REFUSED = [
    "[.*",
    "(a",
    "a)",
    "*a",
    "a|*",
    "a**",
    "a*+",
    "a++",
    "a{2}{3}",
    "a{,3}",
    "a{3,2}",
    "[b-a]",
    "[]a]",
    "[^]",
    "[[:alpha:]]",
    "(?=a)b",
    "(?<=a)b",
    "(?<!a)b",
    "(?>a)",
    "(?#x)",
    "(?x)a b",
    "a(?i)b",
    "(a)(?(1)b)",
    r"([ab])\1",
    r"(?P<x>a)(?P=x)",
    r"\k<x>",
    r"\bword\b",
    r"\Aa\Z",
    r"\q",
    r"\x4",
    r"\u12",
    r"\ud800",
    r"\u{110000}",
    r"\p",
    r"\p{",
    "a\\",
    "a^b",
    "a$b",
    "(a^)*",
    "^*",
    "(^a)+",
    "[^\\x{0}-\\x{10ffff}]",
]


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_regular_or_not_common_is_refused(bench: Bench, pattern: str) -> None:
    with pytest.raises(GrammarError) as caught:
        bench.grammar("regex", pattern)
    assert caught.value.message


def test_errors_name_the_place() -> None:
    with pytest.raises(GrammarError, match=r"line 2, character 3"):
        check(GrammarSpec("regex", "ab\ncd("))


atoms = st.sampled_from(["a", "b", "1", " ", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"\.", "é"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda pattern: f"({pattern})"),
    ),
    max_leaves=6,
)
anchored = st.tuples(st.sampled_from(["", "^"]), patterns, st.sampled_from(["", "$"])).map("".join)
texts = st.text(alphabet="ab1. éc", max_size=5)


@settings(max_examples=150, deadline=None)
@given(anchored, st.lists(texts, max_size=8))
def test_agrees_with_python(bench: Bench, pattern: str, candidates: list[str]) -> None:
    grammar = bench.grammar("regex", pattern)
    for text in candidates:
        assert bench.accepts(grammar, text) == bool(re.fullmatch(pattern, text, re.ASCII)), text


@settings(max_examples=80, deadline=None)
@given(anchored, st.integers(0, 2**32))
def test_walks_match(bench: Bench, pattern: str, seed: int) -> None:
    text = bench.walk(bench.grammar("regex", pattern), random.Random(seed), 12)
    assert text is None or re.fullmatch(pattern, text)


@settings(max_examples=150, deadline=None)
@given(patterns, st.lists(texts, max_size=6))
def test_patterns_in_a_schema_search(bench: Bench, pattern: str, candidates: list[str]) -> None:
    """In JSON Schema a pattern may match anywhere, unless it is anchored."""
    grammar = bench.schema({"type": "string", "pattern": pattern})
    for text in candidates:
        assert bench.accepts(grammar, f'"{text}"') == bool(re.search(pattern, text, re.ASCII))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=r"ab\()[]{}|*+?^$.-,:=!<>di1", max_size=12))
def test_what_is_accepted_is_what_python_accepts(bench: Bench, pattern: str) -> None:
    """Odd syntax: never a crash, and never something that Python would match otherwise."""
    try:
        grammar = bench.grammar("regex", pattern)
    except GrammarError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            python = re.compile(pattern)
        except re.error:
            return  # named groups and shorthands at the ends of ranges, as in ECMA-262
    text = bench.walk(grammar, random.Random(pattern), 8)
    assert text is None or python.fullmatch(text)
