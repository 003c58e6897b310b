"""A cursor over a grammar's text that names the place of an error."""

from __future__ import annotations

from typing import NoReturn

from phloem.constrained.errors import ErrorCode, GrammarError


class Scanner:
    """Reads ``text`` from left to right."""

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self.what = what
        self.position = 0

    def peek(self, count: int = 1) -> str:
        """The next ``count`` characters, fewer at the end; nothing is consumed."""
        return self.text[self.position : self.position + count]

    def take(self, count: int = 1) -> str:
        """Consume and return the next ``count`` characters."""
        taken = self.peek(count)
        if len(taken) < count:
            self.fail("it ends too early")
        self.position += count
        return taken

    def accept(self, word: str) -> bool:
        """Consume ``word`` if it is next."""
        if not self.text.startswith(word, self.position):
            return False
        self.position += len(word)
        return True

    def at_end(self) -> bool:
        """Whether all is consumed."""
        return self.position >= len(self.text)

    def fail(
        self, message: str, *, at: int | None = None, code: ErrorCode = "invalid_grammar"
    ) -> NoReturn:
        """Raise a `GrammarError` naming the position ``at`` (the current one by default)."""
        position = self.position if at is None else at
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        raise GrammarError(f"{self.what}: {message} (line {line}, character {column})", code=code)
