"""The choice engine: a span of the sorted choices is the place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.constrained import bitmask, choices
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.choice.choice_set import ChoiceSet, Span
from phloem.constrained.engines.path_state import PathState
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import Compiled
from phloem.constrained.vocabulary import Vocabulary


class ChoiceEngine:
    """Exact on literal strings, with no escaping and no regex."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self._tokenizer = tokenizer
        self._limits = limits

    def compile(self, spec: GrammarSpec) -> Compiled:
        """See `Engine`."""
        choice_set = ChoiceSet(choices.parse(spec.text, self._limits), self._tokenizer)
        automaton = ChoiceAutomaton(choice_set, self._tokenizer.vocabulary)
        return Compiled(PathState(automaton, [choice_set.start]), choice_set.nbytes)


@dataclass(frozen=True, slots=True)
class ChoiceAutomaton:
    """A `TokenAutomaton` of spans."""

    choices: ChoiceSet
    vocabulary: Vocabulary

    def accepts(self, span: Span) -> bool:
        return self.choices.accepting(span)

    def stops(self, span: Span) -> bool:
        return self.choices.stopped(span)

    def fill(self, span: Span, row: Row) -> None:
        row.fill(0)
        forced = self.forced(span)[:1]
        tokens = np.array(forced, np.int64) if forced else self.choices.tokens(span)
        bitmask.set_bits(row, tokens)

    def after(self, span: Span, token: int) -> Span | None:
        return self.choices.after(span, self.vocabulary.token_bytes[token])

    def forced(self, span: Span) -> list[int]:
        return self.choices.forced(span)
