"""EBNF in GBNF notation."""

from __future__ import annotations

import random

import pytest
from constrained_tools import Bench
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from phloem.constrained import GrammarError, GrammarSpec, check, ebnf

JSON = r"""
# a comment
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""

MATCHES = [
    ("root ::= [éà]+", ["éà"], ["e", ""]),
    (r'root ::= "\u00e9\n\x41\"\\"', ['é\nA"\\'], ["é"]),
    ('root ::= "a"\n  | "b"\n', ["a", "b"], ["ab"]),
    ('root ::= "a" | \n "b"', ["a", "b"], []),
    ('root ::= x # c\nx ::= "y"', ["y"], []),
    ("root ::= .", ["a", "\n", "😀"], ["", "ab"]),
    ('root ::= ("a" "b"){2,3} "c"?', ["abab", "abababc"], ["ab"]),
    ('root ::= ""', [""], ["a"]),
    ('root ::= "<|im_end|>"', ["<|im_end|>"], []),
    # adjacent terminals share characters: a lexer that takes the longest would never get to "x"
    ('root ::= a b\na ::= [a-z]+\nb ::= "x"', ["abx", "xx"], ["x", "ab"]),
    ('root ::= "a" "bc" | "ab" "d"', ["abc", "abd"], ["ab"]),
    ('root ::= ([^<] | "<" [^|])* "<|start|>"', ["<|start|>", "a<b<|start|>"], ["<|"]),
    # names that differ in case and punctuation alone
    ('root ::= fooBar foo_bar foo-bar FOO\nfooBar ::= "a"\nfoo_bar ::= "b"\nfoo-bar ::= "c"\n'
     'FOO ::= "d"', ["abcd"], []),
    ('root ::= expr\nexpr ::= expr "+" term | term\nterm ::= [0-9]+', ["1", "1+22+3"], ["1+", "+"]),
    ('root ::= "(" root ")" | ""', ["", "(())"], ["(", "())"]),
    ('root ::= e\ne ::= e e | "a"', ["a", "aaa"], ["", "b"]),
    ('root ::= "a" root | b\nb ::= "b"', ["aab", "b"], ["a"]),
    (JSON, ['{"a": [1, -2.5e3, {"b": "c\\u00e9"}], "d": true}', "{}"], ["{", '{"a"}', "[]"]),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "accept", "reject"), MATCHES)
def test_matches(bench: Bench, grammar: str, accept: list[str], reject: list[str]) -> None:
    compiled = bench.grammar("ebnf", grammar)
    assert [text for text in accept if not bench.accepts(compiled, text)] == []
    assert [text for text in reject if bench.accepts(compiled, text)] == []


REFUSED = [
    ("", "root"),
    ('start ::= "a"', "root"),
    ("root ::= x", "'x' is not defined (line 1, character 10)"),
    ('root ::= "a"\nroot ::= "b"', "twice (line 2, character 1)"),
    ('root ::= "a', "literal is not closed"),
    ('root ::= "a\nb"', "literal is not closed"),
    ('root ::= ("a"', "group is not closed"),
    ("root ::= [a", "class is not closed"),
    ('root ::= "a" )', "expected a rule"),
    ('root ::= "\\q"', "not supported"),
    ('root ::= *"a"', "expected a rule"),
    ('root ::= "a"{3,2}', "below its lower bound"),
    ('root = "a"', "expected a rule"),
    ("?start: select\nselect: NAME\nNAME: /[a-z]+/\n", "line 1"),
    ("root ::= <|im_end|>", "expected a rule"),
    ('root ::= "a" root', "never comes to an end"),
    ("root ::= root", "never comes to an end"),
    ('root ::= a\na ::= b "x"\nb ::= a', "never comes to an end"),
]


@pytest.mark.parametrize(("grammar", "words"), REFUSED)
def test_what_is_wrong_is_said(grammar: str, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        check(GrammarSpec("ebnf", grammar))
    assert words in caught.value.message


def test_a_grammar_without_recursion_is_one_terminal() -> None:
    lark = ebnf.to_lark(ebnf.parse('root ::= a b | a\na ::= [a-z]+\nb ::= "x"'))
    assert lark.splitlines()[0] == "start: T0"
    assert " r" not in lark


literals = st.sampled_from(['"a"', '"b"', '"ab"', "[a-c]", '""'])
bodies = st.recursive(
    literals,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


def as_regex(body: str) -> str:
    return body.replace('"', "").replace(" ", "")


@settings(max_examples=150, deadline=None)
@given(bodies, st.lists(st.text(alphabet="abc", max_size=6), max_size=8))
def test_regular_grammars_agree_with_regexes(bench: Bench, body: str, texts: list[str]) -> None:
    grammar = bench.grammar("ebnf", f"root ::= {body}")
    regex = bench.grammar("regex", as_regex(body))
    for text in texts:
        assert bench.accepts(grammar, text) == bench.accepts(regex, text), text


@settings(max_examples=60, deadline=None)
@given(bodies, bodies, st.lists(st.text(alphabet="abc", max_size=6), max_size=8))
def test_rules_may_be_named_or_written_out(
    bench: Bench, first: str, second: str, texts: list[str]
) -> None:
    try:
        named = bench.grammar("ebnf", f"root ::= x y x?\nx ::= {first}\ny ::= {second} | x")
    except GrammarError:
        reject()  # llguidance gives up on a few; a refusal is no wrong answer
    written = bench.grammar("ebnf", f"root ::= ({first}) ({second} | ({first})) ({first})?")
    for text in texts:
        assert bench.accepts(named, text) == bench.accepts(written, text), text


def test_walks_under_a_recursive_grammar_balance(bench: Bench) -> None:
    grammar = bench.grammar("ebnf", 'root ::= ("(" root ")" | "[" root "]")*')
    finished = [bench.walk(grammar, random.Random(seed), 10) for seed in range(30)]
    texts = [text for text in finished if text is not None]
    assert texts
    for text in texts:
        while "()" in text or "[]" in text:
            text = text.replace("()", "").replace("[]", "")
        assert text == ""
