"""The choice engine: a span of the sorted choices is the state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from phloem.constrained import bitmask, choices
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.choice.choice_set import ChoiceSet, Span, shared_length
from phloem.constrained.engines.choice.token_index import TokenIndex
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import Compiled

_MOST_RESTS = 32
"""Rests to tokenise at most, to find forced tokens."""


class ChoiceEngine:
    """Exact on literal strings, with no escaping and no regex."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self._tokenizer = tokenizer
        self._limits = limits

    def compile(self, spec: GrammarSpec) -> Compiled:
        """See `Engine`."""
        choice_set = ChoiceSet(choices.parse(spec.text, self._limits), self._index)
        state = ChoiceState(choice_set, self._tokenizer, [choice_set.start])
        return Compiled(state, choice_set.nbytes)

    @cached_property
    def _index(self) -> TokenIndex:
        return TokenIndex(self._tokenizer.vocabulary)


class ChoiceState:
    """A path of spans; the last is where the sequence stands."""

    __slots__ = ("_choices", "_path", "_tokenizer")

    def __init__(self, choice_set: ChoiceSet, tokenizer: Tokenizer, path: list[Span]) -> None:
        self._choices = choice_set
        self._tokenizer = tokenizer
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
        bitmask.set_bits(row, self._choices.tokens(self._path[-1]))

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return len(self._walk(tokens))

    def advance(self, tokens: Sequence[int]) -> int:
        spans = self._walk(tokens)
        self._path.extend(spans)
        return len(spans)

    def rollback(self, count: int) -> None:
        del self._path[len(self._path) - count :]

    def forced(self) -> list[int]:
        """The tokens with which the tokenizer's encoding of every possible rest begins."""
        span = self._path[-1]
        common = self._choices.common_rest(span)
        if not common or span.high - span.low > _MOST_RESTS or 0x80 <= common[0] < 0xC0:
            return []
        encodings = [self._tokenizer.encode(rest) for rest in self._choices.rests(span)]
        shortest = min(shared_length(encodings[0], encoding) for encoding in encodings)
        tokens = encodings[0][:shortest]
        spelled = b"".join(map(self._bytes, tokens))
        return tokens if common.startswith(spelled) else []

    def copy(self) -> ChoiceState:
        return ChoiceState(self._choices, self._tokenizer, self._path.copy())

    def _walk(self, tokens: Sequence[int]) -> list[Span]:
        spans: list[Span] = []
        span: Span | None = self._path[-1]
        for token in tokens:
            span = self._choices.after(span, self._bytes(token)) if span else None
            if span is None:
                break
            spans.append(span)
        return spans

    def _bytes(self, token: int) -> bytes:
        return self._tokenizer.vocabulary.token_bytes[token]
