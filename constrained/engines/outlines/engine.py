"""The outlines engine: from a regex to an index of outlines-core."""

from __future__ import annotations

from importlib.util import find_spec

from phloem.constrained import regex
from phloem.constrained.engines.outlines.builder import Builder
from phloem.constrained.engines.path_state import PathState
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
        return Compiled(PathState(graph, [0]), graph.nbytes)
