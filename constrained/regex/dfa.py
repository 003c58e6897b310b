"""A nondeterministic automaton made deterministic and as small as can be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.code_points import Ranges, partition, union
from phloem.constrained.regex.nfa import Nfa

MOST_STATES = 250
MOST_SETS = 500


@dataclass(frozen=True, slots=True)
class Dfa:
    """State 0 is the start.

    Attributes:
        edges: for each state, the state that each set of characters leads to; every character is
            in one of them.
        accepting: the states in which the text holds a match if it ends there.
        named: sets of characters, each with how Rust writes it.
    """

    edges: list[dict[int, Ranges]]
    accepting: frozenset[int]
    named: Mapping[Ranges, str]


def determine(nfa: Nfa) -> Dfa:
    """The minimal automaton for the texts in which ``nfa`` finds a match.

    Raises:
        GrammarError: it is too large.
    """
    sets = list({ranges for edges in nfa.edges.values() for ranges, _ in edges})
    atoms = partition(sets)
    if len(atoms) > MOST_SETS:
        raise _too_large()
    bits = {ranges: 1 << index for index, ranges in enumerate(sets)}
    edges, accepting = _minimal(*_subsets(nfa, list(atoms), bits), list(atoms.values()))
    return Dfa(edges, accepting, {ranges: rust for rust, ranges in nfa.sets.items()})


def _subsets(
    nfa: Nfa, atoms: list[int], bits: dict[Ranges, int]
) -> tuple[list[list[int]], list[bool]]:
    """The next state for each state and atom, and which states accept; state 0 is the start."""
    first = (nfa.start(), True)
    numbers: dict[tuple[frozenset[int], bool], int] = {first: 0}
    todo = [first]
    table: list[list[int]] = []
    accepting: list[bool] = []
    for states, at_start in todo:
        matched = nfa.matches(states)
        accepting.append(matched or nfa.matches_at_end(states, at_start=at_start))
        moves = [(bits[chars], to) for state in states for chars, to in nfa.edges[state]]
        row = []
        for atom in atoms:
            targets = states if matched else nfa.after(to for bit, to in moves if bit & atom)
            key = targets, False
            if key not in numbers:
                if len(numbers) >= MOST_STATES:
                    raise _too_large()
                numbers[key] = len(numbers)
                todo.append(key)
            row.append(numbers[key])
        table.append(row)
    return table, accepting


def _minimal(
    table: list[list[int]], accepting: list[bool], atoms: list[Ranges]
) -> tuple[list[dict[int, Ranges]], frozenset[int]]:
    """By Moore's refinement: states are told apart as long as they lead to different classes."""
    classes = [int(one) for one in accepting]
    while True:
        signatures = [(classes[i], *(classes[to] for to in row)) for i, row in enumerate(table)]
        numbers = {one: i for i, one in enumerate(dict.fromkeys(signatures))}
        refined = [numbers[one] for one in signatures]
        if len(numbers) == len(set(classes)):
            break
        classes = refined
    rows = {refined[i]: row for i, row in reversed(list(enumerate(table)))}
    edges = []
    for number in range(len(numbers)):
        chars: defaultdict[int, list[Ranges]] = defaultdict(list)
        for atom, to in zip(atoms, rows[number], strict=True):
            chars[refined[to]].append(atom)
        edges.append({to: union(sets) for to, sets in chars.items()})
    return edges, frozenset(refined[i] for i, one in enumerate(accepting) if one)


def _too_large() -> GrammarError:
    return GrammarError("the automaton of the regex is too large", code="grammar_too_complex")
