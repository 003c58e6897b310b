"""The automaton over bytes: a state of the `Dfa`, and a place within a character."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phloem.constrained.engines.fsm.dfa import Dfa
from phloem.constrained.engines.fsm.nfa import too_complex
from phloem.constrained.engines.fsm.utf8 import Letters

DEAD = -1

States = NDArray[np.int64]

_MOST_MOVES = 4 * 1024 * 1024


class Automaton:
    """Starts in state 0; immutable. From every state that is not `DEAD` the end can be reached.

    The low bits of a state are a node of `Letters`, the others a row of moves: a state of the
    `Dfa`. A byte's letter in the node is the index into the row.

    Raises:
        GrammarError: its table would be too large.
    """

    def __init__(self, dfa: Dfa, letters: Letters) -> None:
        nodes, (states, classes) = letters.nodes, dfa.moves.shape
        width = 1 << (nodes + classes).bit_length()
        if states * width > _MOST_MOVES:
            raise too_complex(f"it tells {classes} kinds of characters apart in {states} states")
        alive = (dfa.moves >= 0).astype(np.float32) @ letters.below.T.astype(np.float32) > 0
        inside = np.arange(states)[:, None] * width + np.arange(nodes)
        moves = np.full((states, width), DEAD, np.int32)
        moves[:, :nodes] = np.where(alive, inside, DEAD)
        moves[:, nodes : nodes + classes] = np.where(dfa.moves < 0, DEAD, dfa.moves * width)
        self._moves = moves.ravel()
        self._letters = letters.moves.ravel()
        self._inside: int = width - 1
        self._accepting = dfa.accepting
        self.states: int = states

    @property
    def nbytes(self) -> int:
        return self._moves.nbytes + self._letters.nbytes

    def accepting(self, state: int) -> bool:
        """Whether the text may end in ``state``."""
        return self.between_characters(state) and bool(self._accepting[state // self._width])

    def between_characters(self, state: int) -> bool:
        return state & self._inside == 0

    def following(self, state: int) -> States:
        """The next state for each byte, int64 [256]."""
        return self.step_each(np.full(256, state), np.arange(256))

    def step(self, state: int, data: bytes) -> int:
        """The state after reading ``data``."""
        for byte in data:
            node = state & self._inside
            state = int(self._moves[(state ^ node) + self._letters[node << 8 | byte]])
            if state == DEAD:
                break
        return state

    def step_each(self, states: States, data: NDArray[np.int64]) -> States:
        """The states after each has read its byte of ``data``; none of ``states`` is dead."""
        node = states & self._inside
        letters = self._letters.take(node << 8 | data)
        after: States = self._moves.take((states ^ node) + letters).astype(np.int64)
        return after

    @property
    def _width(self) -> int:
        return self._inside + 1
