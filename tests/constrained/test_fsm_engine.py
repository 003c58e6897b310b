"""The fsm backend: our own automata, against Python's ``re`` and against llguidance."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from constrained_tools import Bench, mask_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_grammar_regex import MATCHES, REFUSED, anchored, texts

from phloem.constrained import GrammarCompiler, GrammarError, GrammarSpec, Limits, Vocabulary


@pytest.fixture(scope="module")
def fsm(vocabulary: Vocabulary) -> Iterator[Bench]:
    compiler = GrammarCompiler(vocabulary, backend="fsm")
    yield Bench(compiler, vocabulary)
    compiler.close()


@pytest.mark.parametrize(("pattern", "accept", "reject"), MATCHES)
def test_matches(fsm: Bench, pattern: str, accept: list[str], reject: list[str]) -> None:
    grammar = fsm.grammar("regex", pattern)
    assert [text for text in accept if not fsm.accepts(grammar, text)] == []
    assert [text for text in reject if fsm.accepts(grammar, text)] == []


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_regular_or_not_common_is_refused(fsm: Bench, pattern: str) -> None:
    with pytest.raises(GrammarError):
        fsm.grammar("regex", pattern)


cased = st.tuples(st.sampled_from(["", "(?i)"]), anchored).map("".join)


@settings(max_examples=200, deadline=None)
@given(cased, st.lists(texts, max_size=8))
def test_agrees_with_python(fsm: Bench, pattern: str, candidates: list[str]) -> None:
    grammar = fsm.grammar("regex", pattern)
    for text in candidates:
        assert fsm.accepts(grammar, text) == bool(re.fullmatch(pattern, text, re.ASCII)), text


@settings(max_examples=150, deadline=None)
@given(cased, st.integers(0, 2**32))
def test_agrees_with_llguidance(fsm: Bench, bench: Bench, pattern: str, seed: int) -> None:
    """Token by token, along a random text."""
    own = fsm.grammar("regex", pattern).matcher()
    other = bench.grammar("regex", pattern).matcher()
    rng = random.Random(seed)
    for _ in range(6):
        legal = [token for token in own_tokens(fsm) if own.validate([token])]
        assert legal == [token for token in own_tokens(fsm) if other.validate([token])]
        assert own.accepting == other.accepting
        if not legal:
            assert own.stopped
            break
        token = rng.choice(legal)
        own.accept(token)
        other.accept(token)


def own_tokens(bench: Bench) -> list[int]:
    return sorted(bench.vocabulary.text_ids)


SETS = [
    *(rf"[\x{{{code:x}}}]" for code in (0x4B, 0x73, 0x17F, 0x1E9E, 0xDF, 0x130, 0x131, 0x345)),
    r"[^s]",
    r"[^ſ-ƀ]",
    r"\p{Lu}",
    r"\P{Lu}",
    r"[^\P{Lu}x]",
    r"[\P{L}x]",
    r"\W",
    r"[^\W]",
    r"[^\S\d]",
    r"[à-þ]",
]
CHARACTERS = "aAkKKsSſßẞéÉiİıΣσς٣ \n\u0345\u03b9\u0399ǅǆ日😀1_-"


@pytest.mark.parametrize("ignore_case", ["", "(?i)"])
@pytest.mark.parametrize("characters", SETS)
def test_sets_hold_what_llguidances_do(
    fsm: Bench, bench: Bench, characters: str, ignore_case: str
) -> None:
    own = fsm.grammar("regex", ignore_case + characters)
    other = bench.grammar("regex", ignore_case + characters)
    held = [char for char in CHARACTERS if fsm.accepts(own, char)]
    assert held == [char for char in CHARACTERS if bench.accepts(other, char)]


@given(st.binary(max_size=5))
def test_only_valid_utf8_passes(fsm: Bench, data: bytes) -> None:
    matcher = fsm.grammar("regex", "(?s).*").matcher()
    single = {token: i for i, token in enumerate(fsm.vocabulary.token_bytes) if len(token) == 1}
    tokens = [single.get(bytes([byte]), 0) for byte in data]
    taken = matcher.accept_many(tokens)
    assert (taken == len(tokens) and matcher.accepting) == is_utf8(data)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@settings(max_examples=100, deadline=None)
@given(anchored, st.integers(0, 2**32))
def test_masks_and_validate_agree(fsm: Bench, pattern: str, seed: int) -> None:
    matcher, rng = fsm.grammar("regex", pattern).matcher(), random.Random(seed)
    for _ in range(5):
        legal = [token for token in own_tokens(fsm) if matcher.validate([token])]
        forced = matcher.forced_tokens(1)
        assert fsm.allowed(matcher) == (forced or legal)
        assert set(forced) <= set(legal)
        if not legal:
            break
        matcher.accept(rng.choice(forced or legal))


FORCED = [
    ("hello world", "hello world", True),
    ('{"orderId": [0-9]+, "description": "(hello|help) world"}',
     '{"orderId": 12, "description": "help world"}', True),
    ("(user_id|user_name): (yes|no), thank you", "user_name: no, thank you", True),
    ("日本語(日本)?、 héllo", "日本語日本、 héllo", True),
    ("(😀|😁) value", "😁 value", True),
    ("[a-z]*", "hello", False),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "saves"), FORCED)
def test_forced_tokens_are_the_tokenizers_own(
    fsm: Bench, pattern: str, text: str, saves: bool
) -> None:
    matcher, tokens = fsm.grammar("regex", pattern).matcher(), fsm.encode(text)
    written = saved = 0
    while written < len(tokens):
        forced = matcher.forced_tokens(64)
        assert forced == tokens[written : written + len(forced)]
        saved += len(forced)
        for token in tokens[written : written + max(1, len(forced))]:
            assert token in fsm.allowed(matcher)
            matcher.accept(token)
            written += 1
    assert matcher.accepting and bool(saved) == saves


literals = st.text(alphabet="abé日😀 1\n", min_size=1, max_size=6)
choices = st.lists(literals, min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(choices, choices, st.data())
def test_forced_tokens_begin_every_rest(
    fsm: Bench, heads: list[str], tails: list[str], data: st.DataObject
) -> None:
    pattern = "".join(f"({'|'.join(map(escaped, options))})" for options in (heads, tails))
    text = data.draw(st.sampled_from(heads)) + data.draw(st.sampled_from(tails))
    matcher, tokens, written = fsm.grammar("regex", pattern).matcher(), fsm.encode(text), 0
    while written < len(tokens):
        forced = matcher.forced_tokens(64)
        assert forced == tokens[written : written + len(forced)]
        step = max(1, len(forced))
        assert matcher.accept_many(tokens[written : written + step]) == step
        written += step
    assert matcher.accepting


def escaped(text: str) -> str:
    return "".join(f"\\u{{{ord(char):x}}}" for char in text)


TOO_COMPLEX = [
    "a{1,100000}",
    "(a|b)*a(a|b){15}",
    "(a?){0,3000}",
    "((a{1,100}){1,100}){1,100}",
    "[a-z0-9]*[0-9][a-z0-9]{400}",
    r"(\W?\w){4500}",
]


@pytest.mark.parametrize("pattern", TOO_COMPLEX)
def test_what_exceeds_the_budget_is_refused(fsm: Bench, pattern: str) -> None:
    with pytest.raises(GrammarError) as caught:
        fsm.grammar("regex", pattern)
    assert caught.value.code == "grammar_too_complex"


def test_the_budget_is_the_compilers(vocabulary: Vocabulary) -> None:
    compiler = GrammarCompiler(vocabulary, backend="fsm", limits=Limits(automaton_states=5))
    compiler.compile(GrammarSpec("regex", "a{4}"))
    with pytest.raises(GrammarError, match="more than 5 states"):
        compiler.compile(GrammarSpec("regex", "a{5}"))
    compiler.close()


def test_what_never_ends_is_empty_or_void_is_settled(fsm: Bench) -> None:
    for pattern in ("(){1000000}", "(()*){1000}", "((|){0,100})*", r"([^\x{0}-\x{10ffff}]|){9}"):
        assert fsm.grammar("regex", pattern).matcher().stopped
    with pytest.raises(GrammarError, match="nothing"):
        fsm.grammar("regex", r"a[^\x{0}-\x{10ffff}]+")


def test_masks_are_shared_by_matchers(fsm: Bench) -> None:
    """A copy of what is kept: writing on a row changes no other's."""
    grammar = fsm.grammar("regex", "[ab]+")
    first = mask_of(grammar.matcher(), fsm.vocabulary.size)
    kept = first.copy()
    first.fill(-1)
    assert np.array_equal(mask_of(grammar.matcher(), fsm.vocabulary.size), kept)


@pytest.mark.parametrize("kind", ["json_schema", "json_object", "ebnf"])
def test_other_kinds_are_refused_in_words(fsm: Bench, kind: str) -> None:
    with pytest.raises(GrammarError, match=f"'fsm' does not serve '{kind}', only regex, choice"):
        fsm.grammar(kind, "{}")
    assert fsm.accepts(fsm.grammar("choice", '["a"]'), "a")
