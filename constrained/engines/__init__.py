"""The engines, by kind of grammar. A new engine is one more entry here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from phloem.constrained.engines.choice import ChoiceEngine
from phloem.constrained.engines.llguidance.engine import LLGuidanceEngine
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarKind, GrammarSpec
from phloem.constrained.state import Compiled


class Engine(Protocol):
    """Compiles specs of the kinds it is registered for, from any thread."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None: ...

    def compile(self, spec: GrammarSpec) -> Compiled:
        """Raises `GrammarError`."""


ENGINES: Mapping[GrammarKind, type[Engine]] = {
    "json_schema": LLGuidanceEngine,
    "json_object": LLGuidanceEngine,
    "regex": LLGuidanceEngine,
    "ebnf": LLGuidanceEngine,
    "choice": ChoiceEngine,
}
"""Decided by kind alone: no engine stands in for another on what that one cannot do."""
