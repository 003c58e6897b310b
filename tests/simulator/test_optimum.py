from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.simulator.optimum import most_hit_tokens
from phloem.runtime.simulator.trace import Call, Segment

PAGE = 16


def call(word: str) -> Call:
    """A prompt with a page for each letter, and one token of output."""
    return Call(0.0, tuple(Segment(ord(letter), PAGE) for letter in word), Segment(0, 1))


def best_of_all(words: list[str], capacity: int) -> int:
    """Hits in pages, trying every set of pages that could be kept after each request."""

    @cache
    def best(index: int, kept: frozenset[str]) -> int:
        if index == len(words):
            return 0
        path = [words[index][:end] for end in range(1, len(words[index]) + 1)]
        hits = 0
        while hits < len(path) - 1 and path[hits] in kept:
            hits += 1
        pages = sorted(kept | set(path))
        choices = combinations(pages, min(capacity, len(pages)))
        return hits + max(best(index + 1, frozenset(choice)) for choice in choices)

    return best(0, frozenset())


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=5), st.integers(1, 4))
def test_no_choice_of_pages_gives_more_hits(words: list[str], capacity: int) -> None:
    found = most_hit_tokens([call(word) for word in words], capacity, PAGE)
    assert found == best_of_all(words, capacity) * PAGE


@pytest.mark.parametrize(("capacity", "hits"), [(9, 3), (2, 3), (1, 2)])
def test_pages_that_are_never_used_again_take_no_room(capacity: int, hits: int) -> None:
    words = ["ax", "bx", "ay", "by", "az"]
    assert most_hit_tokens([call(word) for word in words], capacity, PAGE) == hits * PAGE
