"""The automaton of a regex with look-aheads.

A thread is what is left of the regex, with the claims that look-aheads behind it lay on the rest
of the text. Threads are the states of an automaton; where no claim is open and no look-ahead is
left, the rest of the regex stands as it is, so counted repetitions stay counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.code_points import Ranges, read, union, write
from phloem.constrained.regex.demands import Claims, Watches
from phloem.constrained.regex.elimination import NO_TEXT, Part, either, text_between
from phloem.constrained.regex.first_step import sequence, steps
from phloem.constrained.regex.render import render
from phloem.constrained.regex.tree import (
    EMPTY,
    NOTHING,
    Alt,
    Anchor,
    Chars,
    LookAhead,
    Node,
    Seq,
    depth,
    rebuilt,
    some,
)

MOST_THREADS = 300

_START = Anchor("^")


@dataclass(frozen=True, slots=True)
class Thread:
    """What is left of the regex, and the open claims of look-aheads behind it."""

    node: Node
    claims: Claims = frozenset()
    at_start: bool = False


class Threads:
    """The threads that can be reached from a first one, and the ways between them."""

    def __init__(self, first: Thread, searched: Callable[[Node], Node]) -> None:
        self._watches = Watches(searched)
        self._numbers = {first: 0}
        self._chars: defaultdict[tuple[int, int], list[Ranges]] = defaultdict(list)
        self._parts: dict[tuple[int, int], Part] = {}
        self._sets: dict[Ranges, str] = {}
        todo = [first]
        for thread in todo:
            known = len(self._numbers)
            self._leave(thread)
            todo.extend(list(self._numbers)[known:])

    def text(self) -> str | None:
        """All texts that lead to the end, as a regex; None if there are none."""
        named = self._sets | self._watches.named
        for key, sets in self._chars.items():
            self._join(key, Part(write(union(sets), named), 2))
        return text_between(self._parts, 0, -1)

    def _leave(self, thread: Thread) -> None:
        """Add all ways out of ``thread``."""
        number = self._numbers[thread]
        if not thread.claims and self._plain_ways(thread, number):
            return
        for step in steps(thread.node, at_start=thread.at_start):
            new = (self._watches.claim(d, at_start=thread.at_start) for d in step.demands)
            claims = self._watches.still_open(thread.claims | frozenset(new))
            if claims is None:
                continue
            if step.chars is not None:
                for chars, left in self._watches.moved(claims, self._read(step.chars)):
                    self._chars[number, self._number(Thread(step.rest, left))].append(chars)
            elif self._watches.fulfilled(claims):
                self._join((number, -1), NO_TEXT)

    def _plain_ways(self, thread: Thread, number: int) -> bool:
        """The ways out of a thread without claims that need no look at single characters."""
        if isinstance(thread.node, Alt) and not _is_plain(thread.node):
            for option in thread.node.options:
                target = self._number(Thread(option, at_start=thread.at_start))
                self._join((number, target), NO_TEXT)
            return True
        plain, rest = _plain_head(thread)
        if rest == EMPTY:
            self._join((number, -1), _part(plain))
        elif plain:
            self._join((number, self._number(Thread(rest))), _part(plain))
        return rest == EMPTY or bool(plain)

    def _join(self, key: tuple[int, int], part: Part) -> None:
        known = self._parts.get(key)
        self._parts[key] = part if known is None else either(known, part)

    def _number(self, thread: Thread) -> int:
        if thread not in self._numbers and len(self._numbers) >= MOST_THREADS:
            message = "regex: the automaton of its look-aheads is too large"
            raise GrammarError(message, code="grammar_too_complex")
        return self._numbers.setdefault(thread, len(self._numbers))

    def _read(self, chars: Chars) -> Ranges:
        ranges = read(chars.rust)
        self._sets[ranges] = chars.rust
        return ranges


def _plain_head(thread: Thread) -> tuple[tuple[Node, ...], Node]:
    """The items up to the first that looks around, and what follows them.

    There are none if what follows asks whether it is the start.
    """
    items = thread.node.items if isinstance(thread.node, Seq) else (thread.node,)
    count = next((i for i, item in enumerate(items) if not _is_plain(item)), len(items))
    rest = sequence(*items[count:])
    asks = thread.at_start and some(rest, lambda one: one == _START)
    return ((), thread.node) if asks else (items[:count], rest)


def _is_plain(node: Node) -> bool:
    return not some(node, lambda one: isinstance(one, LookAhead | Anchor) or one == NOTHING)


def _part(items: tuple[Node, ...]) -> Part:
    if len(items) == 1 and isinstance(items[0], Chars):
        return Part(render(flat(items[0])), 2)
    text = render(Seq(tuple(map(flat, items))))
    return Part(f"(?:{text})", 2, depth(Seq(items)) + 1) if text else NO_TEXT


def flat(node: Node) -> Node:
    """``node`` without classes inside classes, so that `parse` reads the same sets."""
    if isinstance(node, Chars) and "[" in node.rust[1:]:
        ranges = read(node.rust)
        return Chars(write(ranges, {ranges: node.rust}))
    return rebuilt(node, flat)
