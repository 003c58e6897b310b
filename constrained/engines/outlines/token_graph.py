"""An outlines index: for each state the tokens that may follow, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phloem.constrained import bitmask
from phloem.constrained.bitmask import Row


@dataclass(frozen=True, slots=True)
class TokenGraph:
    """A `TokenAutomaton` of states, of which 0 is the start.

    State s has the tokens from offsets[s] to offsets[s + 1], ascending.

    Attributes:
        targets: the state after each token.
        accepting: bool [states].
    """

    vocab_size: int
    offsets: NDArray[np.int64]
    tokens: NDArray[np.int32]
    targets: NDArray[np.int32]
    accepting: NDArray[np.bool_]

    @classmethod
    def read(
        cls, offsets: bytes, tokens: bytes, targets: bytes, accepting: bytes, *, vocab_size: int
    ) -> TokenGraph:
        """From the bytes that the worker sends."""
        return cls(
            vocab_size,
            np.frombuffer(offsets, np.int64),
            np.frombuffer(tokens, np.int32),
            np.frombuffer(targets, np.int32),
            np.frombuffer(accepting, np.bool_),
        )

    @property
    def nbytes(self) -> int:
        arrays = (self.offsets, self.tokens, self.targets, self.accepting)
        return sum(array.nbytes for array in arrays)

    def after(self, state: int, token: int) -> int | None:
        """The state once ``token`` is taken; None if it may not follow."""
        low, high = self.offsets[state], self.offsets[state + 1]
        place = low + np.searchsorted(self.tokens[low:high], token)
        if place == high or self.tokens[place] != token:
            return None
        return int(self.targets[place])

    def accepts(self, state: int) -> bool:
        return bool(self.accepting[state])

    def stops(self, state: int) -> bool:
        return self.accepts(state) and bool(self.offsets[state] == self.offsets[state + 1])

    def forced(self, state: int) -> list[int]:
        return []  # it knows tokens alone, not how the tokenizer would cut a text

    def fill(self, state: int, row: Row) -> None:
        """Overwrite ``row`` with the tokens that may follow."""
        allowed = np.zeros(32 * bitmask.words(self.vocab_size), np.bool_)
        allowed[self.tokens[self.offsets[state] : self.offsets[state + 1]]] = True
        row[:] = np.packbits(allowed, bitorder="little").view(np.int32)
