"""Which of several regexes match a text, as regexes that exclude each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.charset import COMMON, ECMA
from phloem.constrained.regex.code_points import Ranges, partition, union
from phloem.constrained.regex.dfa import Dfa, determine
from phloem.constrained.regex.elimination import texts_to
from phloem.constrained.regex.look_ahead import searched
from phloem.constrained.regex.nfa import Nfa
from phloem.constrained.regex.parser import parse

MOST_STATES = 500

Matches = frozenset[int]
"""The indexes of the regexes that match a text."""


@lru_cache(maxsize=64)
def told_apart(
    exact: tuple[str, ...], narrow: tuple[str, ...] = ()
) -> Callable[[Callable[[Matches], Hashable]], Mapping[Any, str]]:
    """Sorts texts by which of the patterns they match: first those of ``exact``, then ``narrow``.

    Patterns in ``exact`` are read as ECMA-262 to the letter, those in ``narrow`` as what all
    dialects agree on. What is returned takes a function that names a group for each set of matches
    (None: of no interest), and returns a regex, anchored on both sides, for each group.

    Raises:
        GrammarError: a pattern is not supported, or the automaton or a regex would be too large.
    """
    readings = (*((text, ECMA) for text in exact), *((text, COMMON) for text in narrow))
    dfas = [
        determine(Nfa([searched(parse(text, shorthands=reading))])) for text, reading in readings
    ]
    product, matches = _product(dfas)

    def regexes(group_of: Callable[[Matches], Hashable]) -> Mapping[Any, str]:
        groups: defaultdict[Any, set[int]] = defaultdict(set)
        for state, matched in enumerate(matches):
            groups[group_of(matched)].add(state)
        found = {name: texts_to(product, ends) for name, ends in groups.items() if name is not None}
        return {name: f"^(?:{text})$" for name, text in found.items() if text is not None}

    return regexes


def _product(dfas: Sequence[Dfa]) -> tuple[Dfa, list[Matches]]:
    """The automaton that runs all of ``dfas``, and which of them accept in its states."""
    named = {ranges: rust for dfa in dfas for ranges, rust in dfa.named.items()}
    start = (0,) * len(dfas)
    numbers = {start: 0}
    todo = [start]
    edges: list[dict[int, Ranges]] = []
    for states in todo:
        onward: defaultdict[int, list[Ranges]] = defaultdict(list)
        for targets, chars in _moves(dfas, states):
            if targets not in numbers:
                if len(numbers) >= MOST_STATES:
                    message = "the automaton of the regexes is too large"
                    raise GrammarError(message, code="grammar_too_complex")
                numbers[targets] = len(numbers)
                todo.append(targets)
            onward[numbers[targets]].append(chars)
        edges.append({target: union(sets) for target, sets in onward.items()})
    matches = [
        frozenset(i for i, state in enumerate(states) if state in dfas[i].accepting)
        for states in todo
    ]
    return Dfa(edges, frozenset(), named), matches


def _moves(dfas: Sequence[Dfa], states: tuple[int, ...]) -> list[tuple[tuple[int, ...], Ranges]]:
    """Where the characters lead from ``states``, in sets that all lead to the same states."""
    outgoing = [list(dfa.edges[state].items()) for dfa, state in zip(dfas, states, strict=True)]
    sets = [chars for edges in outgoing for _, chars in edges]
    moves = []
    for bits, chars in partition(sets).items():
        index, targets = 0, []
        for edges in outgoing:
            taken = next(i for i in range(len(edges)) if bits >> (index + i) & 1)
            targets.append(edges[taken][0])
            index += len(edges)
        moves.append((tuple(targets), chars))
    return moves
