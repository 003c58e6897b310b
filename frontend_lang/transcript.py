"""The text of a state and its chat turns: an immutable value, so a fork shares it as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.ir import Role


class Message(TypedDict):
    """One finished chat turn."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """The chat turn that is open; its content starts at ``start`` in the text."""

    role: Role
    start: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """All text so far, as the model sees it.

    Attributes:
        messages: the finished turns; their texts are part of ``text`` already.
        turn: the open turn, if any.
        scopes: (name, start) of the open variable scopes, outermost first.
    """

    text: str = ""
    messages: tuple[Message, ...] = ()
    turn: Turn | None = None
    scopes: tuple[tuple[str, int], ...] = ()

    def append(self, text: str) -> Transcript:
        """With ``text`` at the end."""
        return replace(self, text=self.text + text)

    def begin(self, role: Role, prefix: str) -> Transcript:
        """With a turn of ``role`` open, after ``prefix``."""
        if self.turn is not None:
            raise ProgramError(
                f"roles cannot nest: {role!r} begins inside {self.turn.role!r}; end that one first"
            )
        text = self.text + prefix
        return replace(self, text=text, turn=Turn(role, len(text)))

    def end(self, role: Role, suffix: str) -> Transcript:
        """With the open turn finished and kept as a message, followed by ``suffix``."""
        if self.turn is None or self.turn.role != role:
            found = "no role is open" if self.turn is None else f"{self.turn.role!r} is open"
            raise ProgramError(f"{role!r} ends, but {found}")
        message = Message(role=role, content=self.text[self.turn.start :])
        return replace(self, text=self.text + suffix, messages=(*self.messages, message), turn=None)

    def enter(self, name: str) -> Transcript:
        """With the scope of variable ``name`` open."""
        return replace(self, scopes=(*self.scopes, (name, len(self.text))))

    def leave(self, name: str) -> tuple[Transcript, str]:
        """With the innermost scope closed; also the text inside it."""
        if not self.scopes or self.scopes[-1][0] != name:
            raise ProgramError(f"the scope of variable {name!r} ends, but it is not the innermost")
        start = self.scopes[-1][1]
        return replace(self, scopes=self.scopes[:-1]), self.text[start:]

    def graft(self, branch: Transcript, base: Transcript) -> Transcript:
        """With what ``branch`` added to ``base``, the state that it forked from."""
        if not branch.turn == base.turn == self.turn:
            raise ProgramError(
                "a fork can be appended only while it and its parent are in the turn it forked in"
            )
        return replace(
            self,
            text=self.text + branch.text[len(base.text) :],
            messages=self.messages + branch.messages[len(base.messages) :],
        )
