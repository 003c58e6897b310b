"""A sequence's walk through a grammar, and the grammar itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from phloem.constrained.bitmask import Row, words
from phloem.constrained.errors import DeadEnd, GrammarViolation
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import State
from phloem.constrained.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Grammar:
    """A compiled grammar: immutable, shared by all sequences that follow it.

    Attributes:
        nbytes: estimated memory it holds.
        compile_s: seconds that compiling took.
        warnings: what it does not enforce, for people to read.
    """

    spec: GrammarSpec
    nbytes: int
    compile_s: float
    warnings: tuple[str, ...]
    vocabulary: Vocabulary = field(repr=False)
    start: State = field(repr=False)

    def matcher(self) -> Matcher:
        """A matcher at the start of the grammar."""
        return Matcher(self.vocabulary, self.start.copy())


class Matcher:
    """Follows one sequence. Cheap to make, not thread-safe.

    `fill` sets bit t exactly if ``validate([t]) == 1``, save where tokens are forced: there it sets
    the first of `forced_tokens` alone, so that masks and forced runs lead to the same tokens, while
    other ways to cut the same text stay legal to `accept`. Special and padding tokens are never
    allowed, EOS tokens where the text is complete.

    EOS belongs to no engine: it is a flag here, so that it can be rolled back like any token.
    """

    def __init__(self, vocabulary: Vocabulary, state: State, terminated: bool = False) -> None:
        self._vocabulary = vocabulary
        self._state = state
        self._terminated = terminated

    @property
    def accepting(self) -> bool:
        """Whether EOS is legal now."""
        return not self._terminated and self._state.accepting

    @property
    def stopped(self) -> bool:
        """Whether EOS alone is known to be legal now: generation may end without another step.

        In rare places the engine finds that out only by filling the mask, which then holds EOS
        alone while this is False.
        """
        return not self._terminated and self._state.stopped

    @property
    def terminated(self) -> bool:
        """Whether EOS was accepted; nothing is legal any more."""
        return self._terminated

    def fill(self, row: Row) -> None:
        """Write the mask of the next token into ``row``, int32 [ceil(V / 32)], contiguous.

        Raises:
            GrammarLimit: the engine gave up, or (`DeadEnd`) no token at all is allowed.
            GrammarViolation: the sequence has ended.
        """
        self._check_row(row)
        if self._terminated:
            raise GrammarViolation("the sequence has ended: no token can follow EOS")
        self._state.fill(row)
        np.bitwise_and(row, self._vocabulary.text_mask, out=row)
        if self._state.accepting:
            np.bitwise_or(row, self._vocabulary.eos_mask, out=row)
        elif not row.any():
            raise DeadEnd("no token of the vocabulary can continue the text")

    def accept(self, token: int) -> None:
        """Take ``token``.

        Raises:
            GrammarViolation: it is not allowed here; the matcher is unchanged.
        """
        if self.accept_many((token,)) == 0:
            raise GrammarViolation(f"token {token} is not allowed at position {self._length}")

    def accept_many(self, tokens: Sequence[int]) -> int:
        """Take the longest legal prefix of ``tokens``; returns its length."""
        if self._terminated:
            return 0
        text = self._text_prefix(tokens)
        taken = self._state.advance(tokens[:text])
        if taken == text and self._ends(tokens, text) and self._state.accepting:
            self._terminated = True
            taken += 1
        return taken

    def validate(self, tokens: Sequence[int]) -> int:
        """Length of the longest legal prefix of ``tokens``; the matcher is unchanged."""
        if self._terminated:
            return 0
        text = self._text_prefix(tokens)
        legal = self._state.valid_prefix(tokens[:text])
        if legal < text or not self._ends(tokens, text):
            return legal
        after = self._state.copy()
        after.advance(tokens[:text])
        return legal + after.accepting

    def rollback(self, count: int) -> None:
        """Undo the last ``count`` accepted tokens, EOS included.

        Raises:
            ValueError: fewer were accepted.
        """
        if not 0 <= count <= self._length:
            raise ValueError(f"cannot roll back {count} of {self._length} tokens")
        if count and self._terminated:
            self._terminated = False
            count -= 1
        if count:
            self._state.rollback(count)

    def fork(self) -> Matcher:
        """An independent matcher at the same place."""
        return Matcher(self._vocabulary, self._state.copy(), self._terminated)

    def forced_tokens(self, limit: int) -> list[int]:
        """At most ``limit`` text tokens that the grammar forces here; may be empty.

        They are cut as the tokenizer cuts that text, and stop short of where a longer token could
        span the end of what is forced. The matcher is unchanged.
        """
        if self._terminated or limit <= 0:
            return []
        tokens = self._state.forced()[:limit]
        return tokens[: self._text_prefix(tokens)]

    @property
    def _length(self) -> int:
        return self._state.length + self._terminated

    def _text_prefix(self, tokens: Sequence[int]) -> int:
        for index, token in enumerate(tokens):
            if token not in self._vocabulary.text_ids:
                return index
        return len(tokens)

    def _ends(self, tokens: Sequence[int], index: int) -> bool:
        return index < len(tokens) and tokens[index] in self._vocabulary.eos_ids

    def _check_row(self, row: Row) -> None:
        expected = (words(self._vocabulary.size),)
        if row.dtype != np.int32 or row.shape != expected or not row.flags.c_contiguous:
            raise ValueError(
                f"a mask row must be contiguous int32 of shape {expected}, "
                f"not {row.dtype} of shape {row.shape}"
            )
