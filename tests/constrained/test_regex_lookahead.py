"""Look-ahead: worked out of a regex, so that what is left matches the same texts."""

from __future__ import annotations

import random
import re

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.constrained import GrammarCompiler, GrammarError, GrammarSpec, check
from phloem.constrained.regex import parse, render, searched
from phloem.constrained.regex.complement import matches, none_of

MATCHES = [
    ("^(?!aws:)[a-z:]+$", ["aws", "awk:", "a"], ["aws:", "aws:a", ""]),
    ("(?!b)[ab]c", ["ac"], ["bc"]),
    ("^(?!.*--)[a-z-]+$", ["a-b", "-"], ["a--b", "--"]),
    ("^(?=.{2,4}$)[a-z]+(-[a-z]+)*$", ["ab", "a-bc"], ["a", "ab-cd", "a-"]),
    ("^(?!-)(?!.*-$)(?!.*--)[a-z-]+$", ["a", "a-b"], ["-a", "a-", "a--b"]),
    ("^[a-z](?!.*--)[a-z-]*$", ["ab", "a-b"], ["a--", "-a"]),
    ("^(?![0-9])[0-9a]+$|^7$", ["a1", "7"], ["1a", "8"]),
    ("(?!^xn--)[xn-]+", ["xn-", "nxn--"], ["xn--", "xn--n"]),
    ("^((?![:*])[:*a-c])+$", ["abc"], ["a:b", ":"]),
    ("^(?=^a)(?!(?!ab))a.*$", ["ab", "abc"], ["ac", "a"]),
    ("(a(?=b)|b(?!b))*", ["abab", "ab"], ["abb", "a"]),
    (r"^a*(?![\s\S])", ["aa", ""], ["ab", "a\n"]),
    ("^(?!aws:)[a-z]{1,128}$", ["a" * 128, "aws"], ["a" * 129, ""]),
    (r"(?!\d)[\w-]+", ["a1", "-"], ["1a"]),
    ("(?=a|(?!.*z))[a-z]+", ["az", "bc"], ["bz"]),
    ("(?s)(?!.*z).+", ["a\nb"], ["a\nz"]),
]


@pytest.mark.parametrize(("pattern", "accept", "reject"), MATCHES)
def test_matches(bench: Bench, pattern: str, accept: list[str], reject: list[str]) -> None:
    grammar = bench.grammar("regex", pattern)
    assert [text for text in accept if not bench.accepts(grammar, text)] == []
    assert [text for text in reject if bench.accepts(grammar, text)] == []


def test_the_fsm_backend_reads_it_too(bench: Bench) -> None:
    compiler = GrammarCompiler(bench.vocabulary, backend="fsm")
    grammar = compiler.compile(GrammarSpec("regex", "^(?!aws:)[a-z:]+$"))
    assert bench.accepts(grammar, "awk:")
    assert not bench.accepts(grammar, "aws:a")
    compiler.close()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(?!\w+$)[\s\S]+$", "é"),  # a word in Python and Rust
        (r"^(?!\s*$)[\s\S]+$", "\ufeff"),  # white space in ECMA-262
        ("^(?!a.b)[\\s\\S]+$", "a\rb"),  # a line end in ECMA-262
        (r"^(?!a$)[\s\S]+$", "a\n"),  # Python's '$' stands before a last line feed
        (r"^a(?=\s)[\s\S]$", "a\ufeff"),
        (r"^(?!(?!\w))[\s\S]$", "é"),
    ],
)
def test_what_dialects_read_differently_is_left_out(bench: Bench, pattern: str, text: str) -> None:
    assert not bench.accepts(bench.grammar("regex", pattern), text)


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?!)", "(?=a)*b", "(?!a", "(?i)(?!a)b", "(?!(?i:a))b", "(?<=a)b", "(?<!a)b"],
)
def test_refused(bench: Bench, pattern: str) -> None:
    with pytest.raises(GrammarError) as caught:
        bench.grammar("regex", pattern)
    assert caught.value.message


@pytest.mark.parametrize("pattern", ["^(?=.{1,2048}$)a+(-a+)*$", "(?=(a|b)*a(a|b){15})[ab]+"])
def test_what_grows_large_is_refused_soon(pattern: str) -> None:
    with pytest.raises(GrammarError) as caught:
        check(GrammarSpec("regex", pattern))
    assert caught.value.code == "grammar_too_complex"


def test_counted_repetitions_behind_what_is_looked_at_stay_counted() -> None:
    written = render(searched(parse("^(?!aws:)[a-z]{1,10000}$")))
    assert "{0,9999}" in written
    assert len(written) < 200


def test_a_schema_pattern_looks_beyond_its_match(bench: Bench) -> None:
    grammar = bench.schema({"type": "string", "pattern": "^a(?!.*z)"})
    assert bench.accepts(grammar, '"abc"')
    assert not bench.accepts(grammar, '"abz"')


def test_keys_of_pattern_properties(bench: Bench) -> None:
    names = {"^(?!x-)[a-z-]+$": {"const": 1}}
    grammar = bench.schema(
        {"type": "object", "patternProperties": names, "additionalProperties": False}
    )
    assert bench.accepts(grammar, '{"y-a": 1}')
    assert not bench.accepts(grammar, '{"x-a": 1}')


def test_errors_name_the_keyword(bench: Bench) -> None:
    schema = {"properties": {"a": {"pattern": "^x(?=(a|b)*a(a|b){15})[ab]+"}}}
    with pytest.raises(GrammarError) as caught:
        bench.schema(schema)
    assert caught.value.pointer == "#/properties/a/pattern"
    assert caught.value.keyword == "pattern"


atoms = st.sampled_from(["a", "b", "1", "-", "[ab]", "[^a]", r"\d", r"\w", ".", "^", "$", "a|b"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        inner.map(lambda pattern: f"(?={pattern})"),
        inner.map(lambda pattern: f"(?!{pattern})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)
texts = st.lists(st.text(alphabet="ab1-", max_size=5), min_size=8, max_size=8)


def _looks_ahead(pattern: str) -> bool:
    return "(?=" in pattern or "(?!" in pattern


@settings(max_examples=400, deadline=None)
@given(patterns.filter(_looks_ahead), texts)
def test_finds_a_match_where_python_does(pattern: str, candidates: list[str]) -> None:
    try:
        found = [text for text in candidates if matches(pattern, text)]
    except GrammarError as error:
        assert "repeated" in error.message
        return
    assert found == [text for text in candidates if re.search(pattern, text)]


@settings(max_examples=150, deadline=None)
@given(patterns, texts)
def test_the_complement_is_where_python_finds_none(pattern: str, candidates: list[str]) -> None:
    try:
        others = none_of((pattern,))
        found = [text for text in candidates if others is not None and matches(others, text)]
    except GrammarError:
        return
    assert found == [text for text in candidates if not re.search(pattern, text)]


@settings(max_examples=150, deadline=None)
@given(patterns.filter(_looks_ahead), texts)
def test_agrees_with_python(bench: Bench, pattern: str, candidates: list[str]) -> None:
    try:
        grammar = bench.grammar("regex", pattern)
    except GrammarError:
        return
    for text in candidates:
        assert bench.accepts(grammar, text) == bool(re.fullmatch(pattern, text, re.ASCII)), text


@settings(max_examples=100, deadline=None)
@given(patterns.filter(_looks_ahead), st.integers(0, 2**32))
def test_walks_match(bench: Bench, pattern: str, seed: int) -> None:
    try:
        grammar = bench.grammar("regex", pattern)
    except GrammarError:
        return
    text = bench.walk(grammar, random.Random(seed), 12)
    assert text is None or (re.fullmatch(pattern, text) and re.fullmatch(pattern, text, re.ASCII))


def test_look_aheads_too_large_for_one_regex_apply_together(bench: Bench) -> None:
    pattern = "^(?=.{3,2048}$)(?!.*--)[a-z]+(-[a-z]+)*$"
    grammar = bench.schema({"type": "string", "pattern": pattern, "maxLength": 60})
    for text in ["ab", "abc", "a-b", "a--b", "a" * 60, "a" * 61]:
        wanted = bool(re.search(pattern, text)) and len(text) <= 60
        assert bench.accepts(grammar, f'"{text}"') == wanted
