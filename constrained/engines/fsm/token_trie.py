"""The text tokens of a vocabulary as a tree of bytes, walked level by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phloem.constrained.engines.fsm.automaton import DEAD, Automaton, States
from phloem.constrained.vocabulary import Vocabulary

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FEW = 4
"""Nodes are walked one by one where they are less than a part in so many of their level."""


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes at one depth, ordered by their bytes.

    Attributes:
        parents: int64 [nodes], indices into the level above.
        children: int64 [nodes of the level above + 1], where the children of each begin.
        bytes: int64 [nodes], by which a node is reached from its parent.
        tokens: int64, those that end on this level.
        ends: int64, the node at which each of ``tokens`` ends.
    """

    parents: Ints
    children: Ints
    bytes: Ints
    tokens: Ints
    ends: Ints

    def below(self, nodes: Ints, states: States) -> tuple[Ints, States]:
        """The children of ``nodes`` of the level above, each with its parent's state."""
        above = len(self.children) - 1
        if _FEW * nodes.size < above:
            return self._below_few(nodes, states)
        state_of = np.full(above, DEAD)
        state_of[nodes] = states
        before = state_of.take(self.parents)
        children = np.flatnonzero(before != DEAD)
        return children, before.take(children)

    def _below_few(self, nodes: Ints, states: States) -> tuple[Ints, States]:
        firsts = self.children.take(nodes)
        counts = self.children.take(nodes + 1) - firsts
        offsets = firsts - np.cumsum(counts) + counts
        return np.repeat(offsets, counts) + np.arange(counts.sum()), np.repeat(states, counts)

    def ending(self, nodes: Ints) -> Ints:
        """The tokens that end at ``nodes``."""
        chosen = np.zeros(len(self.parents), np.bool_)
        chosen[nodes] = True
        return self.tokens[chosen.take(self.ends)]


class TokenTrie:
    """Immutable; shared by all grammars of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        pairs = sorted((vocabulary.token_bytes[token], token) for token in vocabulary.text_ids)
        self._size = vocabulary.size
        self._levels = list(_levels([data for data, _ in pairs], [token for _, token in pairs]))

    def allowed(self, automaton: Automaton, state: int) -> Flags:
        """Whether ``automaton`` can read each token from ``state`` on, bool [V]."""
        allowed = np.zeros(self._size, np.bool_)
        nodes, states = np.zeros(1, np.int64), np.array([state])
        for level in self._levels:
            nodes, states = level.below(nodes, states)
            states = automaton.step_each(states, level.bytes.take(nodes))
            alive = np.flatnonzero(states != DEAD)
            if not alive.size:
                break
            nodes, states = nodes.take(alive), states.take(alive)
            allowed[level.ending(nodes)] = True
        return allowed


def _levels(strings: Sequence[bytes], tokens: Sequence[int]) -> Iterator[Level]:
    """``strings`` are sorted, so those of a node stand next to each other on every level."""
    here = np.zeros(len(strings), np.int64)  # the node of each string on the last level
    lengths = np.array([len(data) for data in strings], np.int64)
    ids, above, depth = np.array(tokens, np.int64), 1, 0
    longer = np.arange(len(strings))
    while longer.size:
        heads = np.array([strings[index][depth] for index in longer.tolist()], np.int64)
        parents = here[longer]
        new = np.diff(parents * 256 + heads, prepend=-1) != 0
        here[longer] = nodes = np.cumsum(new) - 1
        depth += 1
        ending = lengths[longer] == depth
        yield Level(
            parents=parents[new],
            children=np.searchsorted(parents[new], np.arange(above + 1)),
            bytes=heads[new],
            tokens=ids[longer[ending]],
            ends=nodes[ending],
        )
        above, longer = int(nodes[-1]) + 1, longer[~ending]
