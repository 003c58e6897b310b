"""The outlines engine: a state of the index is the state."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from phloem.constrained import regex
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.outlines.builder import Builder
from phloem.constrained.engines.outlines.token_graph import TokenGraph
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import Compiled


class OutlinesEngine:
    """Tokens of all states, worked out at compile time.

    Raises:
        ImportError: outlines-core is not installed.
    """

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        if find_spec("outlines_core") is None:
            raise ImportError("the grammar backend 'outlines' needs the package outlines-core")
        self._builder = Builder(tokenizer.vocabulary)
        self._limits = limits

    def compile(self, spec: GrammarSpec) -> Compiled:
        """See `Engine`."""
        tree = regex.whole(regex.parse(spec.text, limits=self._limits))
        graph = self._builder.build(regex.render(tree))
        return Compiled(OutlinesState(graph, [0]), graph.nbytes)


class OutlinesState:
    """A path through the index; the last is where the sequence stands."""

    __slots__ = ("_graph", "_path")

    def __init__(self, graph: TokenGraph, path: list[int]) -> None:
        self._graph = graph
        self._path = path

    @property
    def length(self) -> int:
        return len(self._path) - 1

    @property
    def accepting(self) -> bool:
        return bool(self._graph.accepting[self._path[-1]])

    @property
    def stopped(self) -> bool:
        return self.accepting and self._graph.ends(self._path[-1])

    def fill(self, row: Row) -> None:
        self._graph.fill(self._path[-1], row)

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return len(self._walk(tokens))

    def advance(self, tokens: Sequence[int]) -> int:
        states = self._walk(tokens)
        self._path.extend(states)
        return len(states)

    def rollback(self, count: int) -> None:
        del self._path[len(self._path) - count :]

    def forced(self) -> list[int]:
        return []  # it knows tokens alone, not how the tokenizer would cut a text

    def copy(self) -> OutlinesState:
        return OutlinesState(self._graph, self._path.copy())

    def _walk(self, tokens: Sequence[int]) -> list[int]:
        states: list[int] = []
        for token in tokens:
            after = self._graph.after(states[-1] if states else self._path[-1], token)
            if after is None:
                break
            states.append(after)
        return states
