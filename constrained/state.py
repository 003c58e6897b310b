"""What an engine supplies: an automaton over text tokens that knows nothing of EOS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from phloem.constrained.bitmask import Row


class State(Protocol):
    """A place in a grammar. Tokens given are text tokens of the vocabulary.

    Methods raise `GrammarLimit` when the engine cannot go on.
    """

    @property
    def length(self) -> int:
        """Tokens taken so far."""

    @property
    def accepting(self) -> bool:
        """Whether the text so far is complete."""

    @property
    def stopped(self) -> bool:
        """Whether the text is complete and nothing can follow; may be False where unknown."""

    def fill(self, row: Row) -> None:
        """Overwrite ``row`` with the tokens that may follow; other bits are undefined."""

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        """How many of ``tokens`` may follow one after the other; the state stays."""

    def advance(self, tokens: Sequence[int]) -> int:
        """Take as many of ``tokens`` as may follow; returns their number."""

    def rollback(self, count: int) -> None:
        """Forget the last ``count`` (at most `length`) tokens."""

    def forced(self) -> list[int]:
        """Tokens that must follow, as the tokenizer itself would cut the text; may be empty."""

    def copy(self) -> State:
        """An independent copy."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An engine's result: the start state, never advanced itself, and its size in bytes."""

    start: State
    nbytes: int
    warnings: tuple[str, ...] = ()
