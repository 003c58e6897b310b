"""The engines, by grammar backend and kind of grammar. A new engine is one more entry here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from phloem.constrained.engines.choice import ChoiceEngine
from phloem.constrained.engines.fsm import FsmEngine
from phloem.constrained.engines.llguidance.engine import LLGuidanceEngine
from phloem.constrained.engines.outlines.engine import OutlinesEngine
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarKind, GrammarSpec
from phloem.constrained.state import Compiled

GrammarBackend = Literal["auto", "llguidance", "fsm", "outlines"]


class Engine(Protocol):
    """Compiles specs of the kinds it is registered for, from any thread."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None: ...

    def compile(self, spec: GrammarSpec) -> Compiled:
        """Raises `GrammarError`."""


_LLGUIDANCE: Mapping[GrammarKind, type[Engine]] = {
    "json_schema": LLGuidanceEngine,
    "json_object": LLGuidanceEngine,
    "regex": LLGuidanceEngine,
    "ebnf": LLGuidanceEngine,
}

BACKENDS: Mapping[GrammarBackend, Mapping[GrammarKind, type[Engine]]] = {
    "auto": {**_LLGUIDANCE, "choice": ChoiceEngine},
    "llguidance": _LLGUIDANCE,
    "fsm": {"regex": FsmEngine, "choice": ChoiceEngine},
    "outlines": {"regex": OutlinesEngine},
}
"""Decided by kind alone: no engine stands in for another on what that one cannot do."""
