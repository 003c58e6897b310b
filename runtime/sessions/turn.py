"""A turn: what one request and its answer added to the tokens before them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One request of a session and its answer.

    Attributes:
        rid: the request's id, by which later turns name this one.
        parent: the turn that it goes on from; None if it began a history.
        kept: how many tokens of the parent's history, from its start, it goes on from.
        tokens: its own ones, first the prompt, then the output.
        output_tokens: how many of its own are output.
    """

    rid: str
    parent: Turn | None
    kept: int
    tokens: array[int]
    output_tokens: int

    @property
    def length(self) -> int:
        """Tokens of the history that ends with this turn."""
        return self.kept + len(self.tokens)


def history(turn: Turn | None, length: int) -> list[int]:
    """The first ``length`` tokens of the history that ends with ``turn``."""
    parts: list[array[int]] = []
    while turn is not None and length > 0:
        parts.append(turn.tokens[: max(0, length - turn.kept)])
        length = min(length, turn.kept)
        turn = turn.parent
    return [token for part in reversed(parts) for token in part]
