"""The outlines backend: regexes by outlines-core, in a process that can be killed."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
from constrained_tools import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from test_grammar_regex import anchored, texts

from phloem.constrained import GrammarCompiler, GrammarError, GrammarSpec, Vocabulary
from phloem.constrained.engines.outlines import builder

pytest.importorskip("outlines_core")

MATCHES = [
    ("^abc$", ["abc"], ["", "abcd"]),
    ("a{2}b{1,2}c{0,}", ["aab", "aabbccc"], ["ab", "aabbb"]),
    ('"[^"]*?"', ['"a"', '""', '"日本 é"'], ['"a', '"""']),
    ("(?i)straSSe", ["STRASSE", "strasse"], ["straße"]),
    (r"\p{L}+\d", ["été1", "日本2"], ["1", "é"]),
    ("[0-9]{4}-[0-9]{2}", ["2024-01"], ["2024-1", "2024-012"]),
]


@pytest.fixture(scope="module")
def outlines(vocabulary: Vocabulary) -> Iterator[Bench]:
    compiler = GrammarCompiler(vocabulary, backend="outlines")
    yield Bench(compiler, vocabulary)
    compiler.close()


@pytest.mark.parametrize(("pattern", "accept", "reject"), MATCHES)
def test_matches(outlines: Bench, pattern: str, accept: list[str], reject: list[str]) -> None:
    grammar = outlines.grammar("regex", pattern)
    assert [text for text in accept if not outlines.accepts(grammar, text)] == []
    assert [text for text in reject if outlines.accepts(grammar, text)] == []


@settings(max_examples=60, deadline=None)
@given(anchored, st.lists(texts, max_size=8), st.integers(0, 2**32))
def test_what_passes_matches(
    outlines: Bench, pattern: str, candidates: list[str], seed: int
) -> None:
    """Not the other way round: of ``a|ab`` it takes ``a`` alone."""
    grammar = outlines.grammar("regex", pattern)
    walked = outlines.walk(grammar, random.Random(seed), 10)
    passed = [text for text in candidates if outlines.accepts(grammar, text)]
    for text in [*passed, *([] if walked is None else [walked])]:
        assert re.fullmatch(pattern, text), text


def test_the_matcher_walks_back_and_forks(outlines: Bench) -> None:
    matcher = outlines.grammar("regex", "ab?c").matcher()
    a, b, c = (outlines.tokenizer.token_to_id(char) for char in "abc")
    assert matcher.validate([a, b, c]) == 3 and matcher.validate([b]) == 0
    assert matcher.accept_many([a, b]) == 2
    fork = matcher.fork()
    matcher.rollback(1)
    assert set(outlines.allowed(matcher)) >= {b, c} and b not in outlines.allowed(fork)
    matcher.accept(c)
    assert matcher.stopped and not fork.stopped
    assert matcher.accept_many(outlines.vocabulary.eos_ids[:1]) == 1


@pytest.mark.parametrize("pattern", ["(?=a)b", "(", "(([a-z]{1,200}){1,200}){1,200}"])
def test_what_it_cannot_do_is_refused(outlines: Bench, pattern: str) -> None:
    with pytest.raises(GrammarError):
        outlines.grammar("regex", pattern)


def test_other_kinds_are_refused(outlines: Bench) -> None:
    for kind in ("json_schema", "json_object", "ebnf", "choice"):
        with pytest.raises(GrammarError, match="does not serve"):
            outlines.grammar(kind, '["a"]')


def test_a_compile_that_takes_too_long_is_killed(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = GrammarCompiler(vocabulary, backend="outlines")
    started = time.monotonic()
    with monkeypatch.context() as patch, pytest.raises(GrammarError) as caught:
        patch.setattr(builder, "_WALL_SECONDS", 1.0)
        compiler.compile(GrammarSpec("regex", r"([\w ]{1,400}\.){3}(\p{L}|x){300}"))
    assert caught.value.code == "grammar_too_complex"
    assert time.monotonic() - started < 5
    assert compiler.compile(GrammarSpec("regex", "a")).nbytes > 0  # by a new process
    compiler.close()
