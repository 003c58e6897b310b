"""What an adapter of an engine provides."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Tokens:
    """A model's vocabulary, in plain types.

    ``token_bytes`` are b"" for special and padding ids; ``tokenizer_json`` is in the form of the
    ``tokenizers`` library.
    """

    token_bytes: Sequence[bytes]
    eos_ids: tuple[int, ...]
    special_ids: frozenset[int]
    tokenizer_json: str

    @property
    def size(self) -> int:
        return len(self.token_bytes)

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(self.__dict__))

    @classmethod
    def load(cls, path: Path) -> Tokens:
        return cls(**pickle.loads(path.read_bytes()))


class Refused(Exception):
    """An engine says that it does not take a schema; ``keyword`` is the one at fault, or a word."""

    def __init__(self, keyword: str, message: str) -> None:
        super().__init__(message)
        self.keyword = keyword
        self.message = message


class Walk(Protocol):
    """One text, written token by token."""

    @property
    def accepting(self) -> bool:
        """Whether the text may end here."""

    def fill(self) -> None:
        """Compute which tokens may follow."""

    def offers(self, token: int) -> bool:
        """Whether the mask of the last `fill` has ``token``."""

    def accept(self, token: int) -> bool:
        """Take ``token`` if it is legal; otherwise the walk is over."""


class Grammar(Protocol):
    """A compiled schema; ``warnings`` say what it does not enforce."""

    warnings: Sequence[str]

    def walk(self) -> Walk: ...


class Engine(Protocol):
    """``description`` names version and settings."""

    description: str

    def compile(self, schema: Any) -> Grammar:
        """Compile, and fill one mask, which finds what no text can begin to satisfy.

        Raises:
            Refused: the engine does not take it.
        """
