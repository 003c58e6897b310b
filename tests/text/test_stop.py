"""Stops are found wherever they end, and no text that may begin one is released early."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.errors import RequestError
from phloem.runtime.text import StopMatcher
from phloem.runtime.text.stop import MAX_MATCH_CHARS, MAX_REGEXES, MAX_STRINGS

ALPHABET = "ab漢"
TEXT = st.text(ALPHABET, max_size=40)
STRINGS = st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=4)
REGEXES = st.lists(
    st.sampled_from(
        ["ab", "a+b", "[ab]{2}", "(?<=a)b", "b$", "^a", "漢漢", "a(?!b)", "a.*漢", "漢|b"]
    ),
    max_size=3,
)
CUTS = st.lists(st.integers(1, 6), min_size=1)


def run(matcher: StopMatcher, text: str, cuts: list[int]) -> tuple[str, str | None, list[str]]:
    """All released text, the stop found, and what was released by each push."""
    parts: list[str] = []
    matched = None
    while text and matched is None:
        size = cuts[len(parts) % len(cuts)]
        result = matcher.push(text[:size])
        parts.append(result.text)
        matched, text = result.matched, text[size:]
    return "".join(parts) + ("" if matched else matcher.flush()), matched, parts


def first_stop(text: str, strings: list[str], regexes: list[str]) -> tuple[int, int, str] | None:
    """(start, end, stop) of the stop that ends first, by trying every end."""
    for end in range(1, len(text) + 1):
        found: list[tuple[int, int, str]] = []
        for order, string in enumerate(strings):
            if text[:end].endswith(string):
                found.append((end - len(string), order, string))
        for order, source in enumerate(regexes, len(strings)):
            if match := re.search(source, text[:end]):
                found.append((match.start(), order, source))
        if found:
            start, _, stop = min(found)
            return start, end, stop
    return None


@given(text=TEXT, strings=STRINGS, regexes=REGEXES, cuts=CUTS, trim=st.booleans())
def test_the_first_stop_cuts_the_text_whatever_the_cuts(
    text: str, strings: list[str], regexes: list[str], cuts: list[int], trim: bool
) -> None:
    released, matched, _ = run(StopMatcher(strings, regexes, trim=trim), text, cuts)
    expected = first_stop(text, strings, regexes)
    if expected is None:
        assert (released, matched) == (text, None)
    else:
        start, end, stop = expected
        assert (released, matched) == (text[: start if trim else end], stop)


@given(text=TEXT, strings=STRINGS, cuts=CUTS)
def test_only_what_may_begin_a_stop_is_withheld(
    text: str, strings: list[str], cuts: list[int]
) -> None:
    matcher = StopMatcher(strings)
    seen = released = ""
    while text:
        seen, text = seen + text[:2], text[2:]
        result = matcher.push(seen[len(seen) - 2 :] if len(seen) % 2 == 0 else seen[-1:])
        if result.matched:
            return
        released += result.text
        withheld = seen[len(released) :]
        heads = [string[:n] for string in strings for n in range(1, len(string))]
        longest = max((len(h) for h in heads if seen.endswith(h)), default=0)
        assert seen == released + withheld and len(withheld) == longest


@pytest.mark.parametrize(
    ("stop", "text", "kept"),
    [("aab", "aaab", "a"), ("abac", "ababac", "ab"), ("aabaaab", "aabaabaaab", "aab")],
)
def test_a_stop_may_begin_inside_a_failed_one(stop: str, text: str, kept: str) -> None:
    assert run(StopMatcher([stop]), text, [1])[:2] == (kept, stop)


def test_a_stop_is_released_only_when_it_is_to_be_kept() -> None:
    assert run(StopMatcher(["STOP"]), "some STOP more", [3])[:2] == ("some ", "STOP")
    assert run(StopMatcher(["STOP"], trim=False), "some STOP more", [3])[:2] == (
        "some STOP",
        "STOP",
    )


def test_text_that_began_a_stop_in_vain_is_released() -> None:
    matcher = StopMatcher(["</answer>"])
    assert matcher.push("x</ans").text == "x"
    assert matcher.push("wering").text == "</answering"
    assert matcher.push("</").text == ""
    assert matcher.flush() == "</" and matcher.flush() == ""


def test_nothing_follows_a_stop() -> None:
    matcher = StopMatcher(["b"])
    assert matcher.push("abc").matched == "b"
    result = matcher.push("def")
    assert (result.text, result.matched, matcher.flush()) == ("", "b", "")


def test_a_regex_sees_across_pushes_and_keeps_its_start() -> None:
    matcher = StopMatcher(regexes=[r"\n\s*Human:"])
    assert matcher.push("Hello\n  ").text == "Hello"
    assert matcher.push("  Hum").text == ""
    result = matcher.push("an: x")
    assert (result.text, result.matched) == ("", r"\n\s*Human:")


def test_anchors_mean_the_whole_text() -> None:
    text = "x" * 500 + "ab"
    assert run(StopMatcher(regexes=["^ab"]), text, [1])[:2] == (text, None)
    assert run(StopMatcher(regexes=[r"\Aab"]), text, [7])[:2] == (text, None)
    assert run(StopMatcher(regexes=[r"(?m)^ab"]), "x" * 500 + "\nab", [3])[1] == r"(?m)^ab"
    assert run(StopMatcher(regexes=[r"(?<=xx)ab"]), text, [1])[1] == r"(?<=xx)ab"


def test_a_match_without_end_withholds_a_bounded_text() -> None:
    matcher = StopMatcher(regexes=["(?s)a.*zzz"])
    released = sum(len(matcher.push("a").text) for _ in range(MAX_MATCH_CHARS + 500))
    assert released == 500


def test_a_regex_that_backtracks_without_end_fails_the_request() -> None:
    matcher = StopMatcher(regexes=["(x+x+)+y"])
    with pytest.raises(RequestError, match="takes too long") as caught:
        for _ in range(200):
            matcher.push("x")
    assert caught.value.param == "stop_regex"


@pytest.mark.parametrize(
    ("options", "param", "message"),
    [
        ({"strings": [""]}, "stop", "0 characters"),
        ({"strings": ["x" * 1025]}, "stop", "1025 characters, not 1 to 1024"),
        ({"strings": ["x"] * (MAX_STRINGS + 1)}, "stop", "65 entries, at most 64"),
        ({"regexes": [""]}, "stop_regex", "0 characters"),
        ({"regexes": ["a" * 1025]}, "stop_regex", "1025 characters"),
        ({"regexes": ["a"] * (MAX_REGEXES + 1)}, "stop_regex", "at most 16"),
        ({"regexes": ["("]}, "stop_regex", "missing"),
        ({"regexes": ["a*"]}, "stop_regex", "matches empty text"),
        ({"regexes": ["$"]}, "stop_regex", "matches empty text"),
        ({"regexes": ["a{1,99999999999999999999}"]}, "stop_regex", "stop_regex"),
        ({"regexes": ["(" * 500 + "a" + ")" * 500]}, "stop_regex", "recursion"),
        ({"regexes": ["(?R)"]}, "stop_regex", "stop_regex"),
    ],
)
def test_stops_that_cannot_work_are_refused(
    options: dict[str, Any], param: str, message: str
) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        StopMatcher(**options)
    assert caught.value.param == param


def test_without_stops_text_passes_through() -> None:
    matcher = StopMatcher()
    assert matcher.push("anything").text == "anything" and matcher.flush() == ""
