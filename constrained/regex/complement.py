"""Regexes for the texts that others do not match."""

from __future__ import annotations

from functools import lru_cache

from phloem.constrained.regex.charset import ECMA, WIDEST
from phloem.constrained.regex.dfa import determine
from phloem.constrained.regex.elimination import texts_to
from phloem.constrained.regex.look_ahead import searched
from phloem.constrained.regex.nfa import Nfa
from phloem.constrained.regex.parser import GENEROUS, parse
from phloem.constrained.regex.tree import Node


@lru_cache(maxsize=256)
def none_of(patterns: tuple[str, ...]) -> str | None:
    """A regex, anchored on both sides, for the texts in which no reader finds a match.

    Where dialects differ on a pattern it is read as the widest of them, so what is left out
    matches in none. None if every text matches.

    Raises:
        GrammarError: a pattern is not supported, or the result would be too large.
    """
    dfa = determine(Nfa(map(_widest, patterns)))
    found = texts_to(dfa, set(range(len(dfa.edges))) - dfa.accepting)
    return None if found is None else f"^(?:{found})$"


def matches(pattern: str, text: str) -> bool:
    """Whether ``pattern``, read as ECMA-262 to the letter, matches somewhere in ``text``.

    What this package writes is read back, whatever its length.

    Raises:
        GrammarError: it is not supported.
    """
    nfa = _finder(pattern)
    states = nfa.start()
    for char in map(ord, text):
        if nfa.matches(states):
            return True
        moves = (edge for state in states for edge in nfa.edges[state])
        states = nfa.after(
            to for ranges, to in moves if any(low <= char <= high for low, high in ranges)
        )
    return nfa.matches(states) or nfa.matches_at_end(states, at_start=not text)


@lru_cache(maxsize=256)
def _finder(pattern: str) -> Nfa:
    return Nfa([searched(parse(pattern, shorthands=ECMA, limits=GENEROUS))])


def _widest(pattern: str) -> Node:
    return searched(parse(pattern, shorthands=WIDEST))
