"""An automaton as a regex, by taking out state after state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.code_points import write
from phloem.constrained.regex.dfa import Dfa

MOST_CHARACTERS = 20_000
DEEPEST = 40
"""Groups inside each other; the engine reads about eighty."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a regex; ``binding`` is 2 for what can be repeated, 1 for a sequence, 0 else."""

    text: str
    binding: int
    depth: int = 0

    def bound(self, binding: int) -> Part:
        """The same as a group, if it binds less."""
        if self.binding >= binding:
            return self
        return Part(f"(?:{self.text})", 2, self.depth + 1)


NO_TEXT = Part("", 1)
"""The empty text."""


def texts_to(dfa: Dfa, ends: Collection[int]) -> str | None:
    """A regex for the texts that lead from the start to one of ``ends``; None without any.

    Raises:
        GrammarError: it would be too long.
    """
    end = -1
    edges = {(state, end): NO_TEXT for state in ends}
    written = cache(lambda chars: Part(write(chars, dfa.named), 2))
    useful = _before([(i, to) for i, onward in enumerate(dfa.edges) for to in onward], ends)
    for state in useful:
        for target, chars in dfa.edges[state].items():
            if target in useful:
                edges[state, target] = written(chars)
    return text_between(edges, 0, end)


def text_between(parts: Mapping[tuple[int, int], Part], first: int, end: int) -> str | None:
    """A regex for the ways from state ``first`` to ``end``, which no way leaves; None without any.

    Raises:
        GrammarError: it would be too long.
    """
    start = -2
    useful = _before(parts, {end})
    ways = _Ways()
    ways.add(start, first, NO_TEXT)
    for (source, target), part in parts.items():
        if source in useful and target in useful:
            ways.add(source, target, part)
    costs = {state: ways.cost(state) for state in useful - {end}}
    while costs:
        state = min(costs, key=costs.__getitem__)
        del costs[state]
        near = ways.take_out(state)
        costs.update((other, ways.cost(other)) for other in near & costs.keys())
    found = ways.behind[start].get(end)
    return found.text if found else None


def _before(ways: Iterable[tuple[int, int]], ends: Collection[int]) -> set[int]:
    """``ends`` and the states from which ``ways`` lead to one of them."""
    sources: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in ways:
        sources[target].append(source)
    todo = list(ends)
    found = set(ends)
    for state in todo:
        more = set(sources[state]) - found
        found |= more
        todo.extend(more)
    return found


class _Ways:
    """The parts between states, by where they begin and by where they end."""

    def __init__(self) -> None:
        self.behind: defaultdict[int, dict[int, Part]] = defaultdict(dict)
        self._before: defaultdict[int, dict[int, Part]] = defaultdict(dict)
        self._characters = 0

    def add(self, source: int, target: int, part: Part) -> None:
        known = self.behind[source].get(target)
        joined = either(known, part) if known else part
        self._characters += len(joined.text) - (len(known.text) if known else 0)
        self.behind[source][target] = self._before[target][source] = joined

    def cost(self, state: int) -> int:
        """Characters that taking ``state`` out adds."""
        before = [len(part.text) for one, part in self._before[state].items() if one != state]
        behind = [len(part.text) for one, part in self.behind[state].items() if one != state]
        loop = self.behind[state].get(state, NO_TEXT)
        around = (sum(behind) + len(loop.text) * len(behind)) * len(before)
        return around + sum(before) * len(behind)

    def take_out(self, state: int) -> set[int]:
        """Lead all ways through ``state`` past it; returns the states they joined."""
        loop = self.behind[state].pop(state, None)
        if loop:
            self._before[state].pop(state)
            self._characters -= len(loop.text)
        around = _sequence(loop.bound(2), Part("*", 2)) if loop else NO_TEXT
        before, behind = self._before.pop(state), self.behind.pop(state)
        for source in before:
            self._characters -= len(self.behind[source].pop(state).text)
        for target in behind:
            self._characters -= len(self._before[target].pop(state).text)
        for source, first in before.items():
            for target, last in behind.items():
                self.add(source, target, _sequence(first, around, last))
        if self._characters > MOST_CHARACTERS:
            raise _too_long()
        return before.keys() | behind.keys()


def _sequence(*parts: Part) -> Part:
    kept = [part.bound(1) for part in parts if part.text]
    if len(kept) == 1:
        return kept[0]
    return Part("".join(part.text for part in kept), 1, max((p.depth for p in kept), default=0))


def either(a: Part, b: Part) -> Part:
    """What is one or the other."""
    if not a.text or not b.text:
        some = Part(a.text + b.text, (a if a.text else b).binding, max(a.depth, b.depth))
        return _checked(_sequence(some.bound(2), Part("?", 2)))
    return _checked(Part(f"{a.text}|{b.text}", 0, max(a.depth, b.depth)))


def _checked(part: Part) -> Part:
    if part.depth > DEEPEST:
        raise _too_long()
    return part


def _too_long() -> GrammarError:
    return GrammarError("the regex would be too long", code="grammar_too_complex")
