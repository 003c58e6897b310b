"""The automaton that reads one class of characters at a time and is in one state at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from phloem.constrained.engines.fsm.nfa import Nfa, too_complex
from phloem.constrained.engines.fsm.partition import Partition

_WORK = 100
"""States of the `Nfa` visited at most, for each state allowed: it bounds the time to a second."""

Places = frozenset[int]
"""States of the `Nfa` in which it may be at once: those that read, and its end."""


class Dfa:
    """Starts in state 0; from every state the end can be reached.

    Attributes:
        moves: int32 [states, classes], the next state, or -1.
        accepting: bool [states].

    Raises:
        GrammarError: it takes more than ``most`` states, or too long.
    """

    moves: NDArray[np.int32]
    accepting: NDArray[np.bool_]

    def __init__(self, nfa: Nfa, partition: Partition, most: int) -> None:
        self._nfa = nfa
        self._classes = partition.classes
        self._most = most
        self._work = most * _WORK
        self._states: dict[Places, int] = {}
        self._todo: list[Places] = []
        self._state([0])
        rows = [self._row(places, partition.count) for places in self._todo]  # it grows
        self.moves = np.array(rows, np.int32).reshape(len(rows), partition.count)
        self.accepting = np.array([nfa.end in places for places in self._todo])

    def _row(self, places: Places, classes: int) -> list[int]:
        after: defaultdict[int, list[int]] = defaultdict(list)
        for place in places:
            if place in self._nfa.reading:
                chosen, target = self._nfa.reading[place]
                after[chosen].append(target)
        sets: defaultdict[int, list[int]] = defaultdict(list)
        for chosen in after:
            for number in self._classes[chosen]:
                sets[number].append(chosen)
        row, known = [-1] * classes, dict[tuple[int, ...], int]()
        for number, holding in sets.items():
            key = tuple(holding)
            if key not in known:
                known[key] = self._state(chain.from_iterable(after[chosen] for chosen in key))
            row[number] = known[key]
        return row

    def _state(self, places: Iterable[int]) -> int:
        """The state of being in any of ``places``, or where they lead silently."""
        settled = self._settle(places)
        state = self._states.setdefault(settled, len(self._states))
        if state == len(self._todo):
            if state == self._most:
                raise too_complex(f"it takes more than {self._most} states")
            self._todo.append(settled)
        return state

    def _settle(self, places: Iterable[int]) -> Places:
        todo = list(places)
        seen = set(todo)
        while todo:
            for after in self._nfa.silent[todo.pop()]:
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        self._work -= len(seen)
        if self._work < 0:
            raise too_complex("its states are too large")
        return frozenset(
            place for place in seen if place in self._nfa.reading or place == self._nfa.end
        )
