"""Look-aheads as automata that watch the rest of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from phloem.constrained.regex.code_points import EVERY, Ranges, common
from phloem.constrained.regex.dfa import Dfa, determine
from phloem.constrained.regex.first_step import Demand
from phloem.constrained.regex.nfa import Nfa
from phloem.constrained.regex.tree import (
    NOTHING,
    Anchor,
    Chars,
    LookAhead,
    Node,
    Seq,
    rebuilt,
)

_START = Anchor("^")
_END = LookAhead(Chars("(?s:.)"), negated=True)

Claim = tuple[int, int]
"""A watching automaton by its number, and the state that it is in."""

Claims = frozenset[Claim]


class Watches:
    """The automata of a regex's look-aheads, made when first met.

    Args:
        plain: takes a regex to one without look-ahead that finds a match in the same texts.

    Attributes:
        named: sets of characters, each with how Rust writes it.
    """

    def __init__(self, plain: Callable[[Node], Node]) -> None:
        self._plain = plain
        self._numbers: dict[tuple[Demand, bool], int] = {}
        self._automata: list[Dfa] = []
        self.named: dict[Ranges, str] = {}

    def claim(self, demand: Demand, *, at_start: bool) -> Claim:
        """``demand`` on the text from here on.

        Raises:
            GrammarError: its automaton is too large.
        """
        key = demand, at_start
        if key not in self._numbers:
            self._automata.append(self._automaton(demand, at_start))
            self._numbers[key] = len(self._automata) - 1
        return self._numbers[key], 0

    def _automaton(self, demand: Demand, at_start: bool) -> Dfa:
        ahead = demand if isinstance(demand, LookAhead) else _END
        item = ahead.item if at_start else _inside(ahead.item)
        dfa = determine(Nfa([self._plain(Seq((_START, item)))]))
        self.named.update(dfa.named)
        if ahead.negated:
            return replace(dfa, accepting=frozenset(range(len(dfa.edges))) - dfa.accepting)
        return dfa

    def fulfilled(self, claims: Claims) -> bool:
        """Whether the text may end here."""
        return all(state in self._automata[number].accepting for number, state in claims)

    def still_open(self, claims: Claims) -> Claims | None:
        """``claims`` without what holds whatever follows; None if one cannot hold any more."""
        settled = frozenset(claim for claim in claims if self._settled(*claim))
        return claims - settled if self.fulfilled(settled) else None

    def _settled(self, number: int, state: int) -> bool:
        return self._automata[number].edges[state].keys() == {state}

    def moved(self, claims: Claims, chars: Ranges) -> Iterator[tuple[Ranges, Claims]]:
        """Where ``chars`` lead ``claims`` that can still hold, in sets that lead to the same."""
        ways: list[tuple[Ranges, Claims]] = [(chars, frozenset())]
        for number, state in claims:
            onward = self._automata[number].edges[state].items()
            ways = [
                (both, found | {(number, target)})
                for taken, found in ways
                for target, ranges in onward
                if (both := taken if ranges == EVERY else common(taken, ranges))
            ]
        for taken, found in ways:
            left = self.still_open(found)
            if left is not None:
                yield taken, left


def _inside(node: Node) -> Node:
    """``node`` where ``^`` is never true."""
    return NOTHING if node == _START else rebuilt(node, _inside)
