"""What can go wrong with a grammar, as types that carry the data explaining it."""

from __future__ import annotations

from typing import Literal

ErrorCode = Literal["invalid_grammar", "unsupported_json_schema", "grammar_too_complex"]


class GrammarError(ValueError):
    """A grammar that cannot be compiled as sent; the sender can act on it.

    Attributes:
        code: ``invalid_grammar`` (malformed, or nothing can satisfy it),
            ``unsupported_json_schema`` (valid, but a keyword cannot be enforced while decoding) or
            ``grammar_too_complex`` (over a limit).
        pointer: JSON pointer (URI fragment form, ``#/properties/a/not``) of the offending part of
            a schema, where it is known.
        keyword: the schema keyword at fault, where it is known.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        keyword: str | None = None,
        code: ErrorCode = "invalid_grammar",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer
        self.keyword = keyword
        self.code = code

    def again(self) -> GrammarError:
        """An equal error without this one's traceback, to be raised anew."""
        return GrammarError(
            self.message, pointer=self.pointer, keyword=self.keyword, code=self.code
        )


class GrammarViolation(ValueError):
    """A token that the grammar does not allow here was given to ``accept``: a caller's bug."""


class GrammarLimit(RuntimeError):
    """A matcher cannot go on, mostly because the engine hit a limit of its resources."""


class DeadEnd(GrammarLimit):
    """No token at all can continue the text, and it is not complete."""
