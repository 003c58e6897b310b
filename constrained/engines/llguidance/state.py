"""A llguidance matcher as a `State`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from llguidance import LLMatcher

from phloem.constrained.bitmask import Row
from phloem.constrained.errors import DeadEnd, GrammarLimit

T = TypeVar("T")


class Template:
    """A compiled grammar that can be compiled again.

    Copies of a llguidance matcher share one lexer. When it hits a limit, every copy fails or gives
    too narrow masks from then on, whichever caused it; only compiling again gives a sound lexer.
    """

    def __init__(self, compile: Callable[[], LLMatcher]) -> None:
        self._compile = compile
        self._pristine = compile()
        self.generation = 0
        self._lock = threading.Lock()

    @property
    def error(self) -> str:
        """Why the grammar did not compile; empty if it did."""
        message: str = self._pristine.get_error()
        return message

    def matcher(self) -> tuple[LLMatcher, int]:
        """A matcher at the start, and the generation of its lexer."""
        with self._lock:
            return self._pristine.deep_copy(), self.generation

    def retire(self, generation: int) -> None:
        """Compile again unless that was done since ``generation``."""
        with self._lock:
            if generation == self.generation:
                self._pristine = self._compile()
                self.generation += 1


class LLGuidanceState:
    """Walks a matcher, and walks a new one again where the shared lexer has failed."""

    __slots__ = ("_generation", "_matcher", "_template", "_tokens")

    def __init__(
        self, template: Template, matcher: LLMatcher, generation: int, tokens: list[int]
    ) -> None:
        self._template = template
        self._matcher = matcher
        self._generation = generation
        self._tokens = tokens

    @classmethod
    def at_start(cls, template: Template) -> LLGuidanceState:
        """The state before any token."""
        return cls(template, *template.matcher(), [])

    @property
    def length(self) -> int:
        return len(self._tokens)

    @property
    def accepting(self) -> bool:
        return bool(self._ask(lambda matcher: matcher.is_accepting()))

    @property
    def stopped(self) -> bool:
        return self.accepting and bool(self._matcher.is_stopped())

    def fill(self, row: Row) -> None:
        self._ask(lambda matcher: matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes))

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        legal: int = self._ask(lambda matcher: matcher.validate_tokens(list(tokens)))
        return legal

    def advance(self, tokens: Sequence[int]) -> int:
        taken: int = self._ask(lambda matcher: matcher.try_consume_tokens(list(tokens)))
        self._tokens.extend(tokens[:taken])
        return taken

    def rollback(self, count: int) -> None:
        self._ask(lambda matcher: matcher.rollback(count))
        del self._tokens[-count:]

    def forced(self) -> list[int]:
        return list(self._ask(lambda matcher: matcher.compute_ff_tokens()))

    def copy(self) -> LLGuidanceState:
        return LLGuidanceState(
            self._template, self._matcher.deep_copy(), self._generation, self._tokens.copy()
        )

    def _ask(self, question: Callable[[LLMatcher], T]) -> T:
        """``question`` of the matcher; once more of a new one if the lexer was at fault."""
        if self._generation != self._template.generation:
            self._revive()
        answer = question(self._matcher)
        if not self._matcher.is_error():
            return answer
        if "lexer error" in self._matcher.get_error():
            self._template.retire(self._generation)
            self._revive()
            answer = question(self._matcher)
            if not self._matcher.is_error():
                return answer
            self._template.retire(self._generation)  # it was us: leave no failed lexer behind
        reason = first_line(self._matcher.get_error())
        raise DeadEnd(reason) if reason.startswith("NoExtension") else GrammarLimit(reason)

    def _revive(self) -> None:
        self._matcher, self._generation = self._template.matcher()
        self._matcher.try_consume_tokens(self._tokens)


def first_line(message: str) -> str:
    """The reason in a llguidance error, without the dump of its state."""
    lines = message.strip().splitlines() or [""]
    reason = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") else lines[0]
    return reason[:300]
