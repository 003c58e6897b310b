"""A regex as a nondeterministic automaton over characters, by Thompson's construction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.code_points import Ranges, read
from phloem.constrained.regex.tree import Alt, Anchor, Chars, Node, Repeat, Seq

MOST_STATES = 4_000


class Nfa:
    """Finds texts in which one of several regexes matches somewhere.

    Attributes:
        edges: from a state, over a set of characters, to a state.
        sets: the sets of characters by how Rust writes them.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.edges: defaultdict[int, list[tuple[Ranges, int]]] = defaultdict(list)
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._anchored: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        self._states = 0
        self._start = self._state()
        self._end = self._state()
        self.sets: dict[str, Ranges] = {}
        for node in nodes:
            self._add(node, self._start, self._end)

    def start(self) -> frozenset[int]:
        """The states before any character."""
        return self._closure({self._start}, "^")

    def after(self, targets: Iterable[int]) -> frozenset[int]:
        """The states once a character led to ``targets``; a match may also begin behind it."""
        return self._closure({*targets, self._start}, "")

    def matches(self, states: frozenset[int]) -> bool:
        """Whether a match has ended, so that whatever follows does not matter."""
        return self._end in states

    def matches_at_end(self, states: frozenset[int], *, at_start: bool) -> bool:
        """Whether there is a match if the text ends here."""
        return self._end in self._closure(states, "^$" if at_start else "$")

    def _state(self) -> int:
        self._states += 1
        if self._states > MOST_STATES:
            message = f"the regex has more than {MOST_STATES} states"
            raise GrammarError(message, code="grammar_too_complex")
        return self._states - 1

    def _closure(self, states: Iterable[int], anchors: str) -> frozenset[int]:
        found = set(states)
        todo = list(found)
        while todo:
            state = todo.pop()
            held = (target for symbol, target in self._anchored[state] if symbol in anchors)
            for target in (*self._free[state], *held):
                if target not in found:
                    found.add(target)
                    todo.append(target)
        return frozenset(found)

    def _add(self, node: Node, start: int, end: int) -> None:
        match node:
            case Chars(rust):
                if rust not in self.sets:
                    self.sets[rust] = read(rust)
                self.edges[start].append((self.sets[rust], end))
            case Anchor(symbol):
                self._anchored[start].append((symbol, end))
            case Seq(items):
                for item in items:
                    state = self._state()
                    self._add(item, start, state)
                    start = state
                self._free[start].append(end)
            case Alt(options):
                for option in options:
                    self._add(option, start, end)
            case Repeat(item, low, high):
                self._repeat(item, low, high, start, end)
            case _:
                raise GrammarError("a regex that ignores case is not supported here")

    def _repeat(self, item: Node, low: int, high: int | None, start: int, end: int) -> None:
        for index in range(low if high is None else high):
            state = self._state()
            if index >= low:
                self._free[start].append(end)
            self._add(item, start, state)
            start = state
        if high is None:
            loop, state = self._state(), self._state()
            self._free[start].append(loop)
            self._add(item, loop, state)
            self._free[state].append(loop)
            start = loop
        self._free[start].append(end)
