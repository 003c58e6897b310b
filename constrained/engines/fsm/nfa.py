"""A regex tree as an automaton over sets of characters, with moves that read nothing."""

from __future__ import annotations

from phloem.constrained.engines.fsm import charset
from phloem.constrained.errors import GrammarError
from phloem.constrained.regex.code_points import Ranges
from phloem.constrained.regex.tree import EMPTY, Alt, Chars, IgnoreCase, Node, Repeat, Seq


class Nfa:
    """Starts in state 0, ends in ``end``; from every state the end can be reached.

    Attributes:
        sets: the distinct sets of characters.
        silent: state -> states that it may become without reading.
        reading: state -> (index of a set, the state after reading one of it), where it reads.

    Raises:
        GrammarError: nothing matches ``node``, or it takes more than ``most`` states.
    """

    def __init__(self, node: Node, most: int) -> None:
        self.sets: dict[Ranges, int] = {}
        self.silent: list[list[int]] = []
        self.reading: dict[int, tuple[int, int]] = {}
        self._most = most
        pruned = _prune(node)
        if pruned is None:
            raise GrammarError("regex: nothing matches it")
        self.end = self._add(pruned, self._new(), ignore_case=False)

    def _new(self) -> int:
        if len(self.silent) == self._most:
            raise too_complex(f"it is longer than {self._most} states when written out")
        self.silent.append([])
        return len(self.silent) - 1

    def _add(self, node: Node, start: int, *, ignore_case: bool) -> int:
        """Add the ways that spell ``node`` from ``start``; returns where they end."""
        match node:
            case Chars(rust):
                return self._read(charset.read(rust, ignore_case), start)
            case Seq(items):
                for item in items:
                    start = self._add(item, start, ignore_case=ignore_case)
                return start
            case Alt(options):
                end = self._new()
                for option in options:
                    self.silent[self._add(option, start, ignore_case=ignore_case)].append(end)
                return end
            case Repeat(item, low, high):
                for _ in range(low):
                    start = self._add(item, start, ignore_case=ignore_case)
                if high is None:
                    return self._loop(item, start, ignore_case=ignore_case)
                return self._optional(item, start, high - low, ignore_case=ignore_case)
            case IgnoreCase(item):
                return self._add(item, start, ignore_case=True)
        raise ValueError(f"{node} has no place in a regex matched whole")

    def _read(self, ranges: Ranges, start: int) -> int:
        place, end = self._new(), self._new()
        self.silent[start].append(place)
        self.reading[place] = self.sets.setdefault(ranges, len(self.sets)), end
        return end

    def _loop(self, item: Node, start: int, *, ignore_case: bool) -> int:
        hub = self._new()
        self.silent[start].append(hub)
        self.silent[self._add(item, hub, ignore_case=ignore_case)].append(hub)
        return hub

    def _optional(self, item: Node, start: int, times: int, *, ignore_case: bool) -> int:
        end = self._new()
        for _ in range(times):
            self.silent[start].append(end)
            start = self._add(item, start, ignore_case=ignore_case)
        self.silent[start].append(end)
        return end


def _prune(node: Node) -> Node | None:
    """``node`` without what matches nothing, or is empty and repeated; None if that is all."""
    match node:
        case Chars(rust):
            return node if charset.read(rust, False) else None
        case Seq(items):
            parts = [_prune(item) for item in items]
            solid = tuple(part for part in parts if part is not None and part != EMPTY)
            return None if None in parts else Seq(solid)
        case Alt(options):
            left = tuple(part for option in options if (part := _prune(option)) is not None)
            return Alt(left) if left else None
        case Repeat(item, low, high):
            once = _prune(item)
            if once is None:
                return None if low else EMPTY
            return EMPTY if once == EMPTY else Repeat(once, low, high)
        case IgnoreCase(item):
            inner = _prune(item)
            return None if inner is None else IgnoreCase(inner)
        case _:
            return node


def too_complex(why: str) -> GrammarError:
    """The refusal of a regex that exceeds the engine's limits."""
    return GrammarError(
        f"regex: it is too complex for the fsm grammar backend: {why}", code="grammar_too_complex"
    )
