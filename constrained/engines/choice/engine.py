"""The choice engine: a span of the sorted choices is the state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.constrained import bitmask, choices
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.choice.choice_set import ChoiceSet, Span
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
        state = ChoiceState(choice_set, self._tokenizer.vocabulary, [choice_set.start])
        return Compiled(state, choice_set.nbytes)


class ChoiceState:
    """A path of spans; the last is where the sequence stands."""

    __slots__ = ("_choices", "_path", "_vocabulary")

    def __init__(self, choice_set: ChoiceSet, vocabulary: Vocabulary, path: list[Span]) -> None:
        self._choices = choice_set
        self._vocabulary = vocabulary
        self._path = path

    @property
    def length(self) -> int:
        return len(self._path) - 1

    @property
    def accepting(self) -> bool:
        return self._choices.accepting(self._path[-1])

    @property
    def stopped(self) -> bool:
        return self._choices.stopped(self._path[-1])

    def fill(self, row: Row) -> None:
        row.fill(0)
        forced = self.forced()[:1]
        tokens = np.array(forced, np.int64) if forced else self._choices.tokens(self._path[-1])
        bitmask.set_bits(row, tokens)

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return len(self._walk(tokens))

    def advance(self, tokens: Sequence[int]) -> int:
        spans = self._walk(tokens)
        self._path.extend(spans)
        return len(spans)

    def rollback(self, count: int) -> None:
        del self._path[len(self._path) - count :]

    def forced(self) -> list[int]:
        return self._choices.forced(self._path[-1])

    def copy(self) -> ChoiceState:
        return ChoiceState(self._choices, self._vocabulary, self._path.copy())

    def _walk(self, tokens: Sequence[int]) -> list[Span]:
        spans: list[Span] = []
        for token in tokens:
            here = spans[-1] if spans else self._path[-1]
            after = self._choices.after(here, self._vocabulary.token_bytes[token])
            if after is None:
                break
            spans.append(after)
        return spans
