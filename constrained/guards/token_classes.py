"""Which tokens can matter to a guard, as masks: all others need no look."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.constrained import bitmask
from phloem.constrained.bitmask import Row
from phloem.constrained.vocabulary import Vocabulary

SPACE = b" \t\n\r"
_FEW = 64
"""Words of a mask that are not empty."""

_PLAIN_NUMBER = re.compile(rb"[-+.0-9E]*")
_UNFINISHED = re.compile(rb'[ \t\n\r]*(?:"[^"]*|[-+.0-9E]*)')
"""What ends no value where one is to begin."""


_OBJECT = re.compile(rb"\{.*[,}]", re.DOTALL)


def _ends_two(data: bytes) -> bool:
    """Whether behind a comma there is a whole value."""
    return b"," in data and not _UNFINISHED.fullmatch(data.partition(b",")[2])


class Spelling(Protocol):
    """The text tokens by their bytes."""

    def spelling(self, data: bytes) -> list[int]:
        """The tokens whose bytes are ``data``."""

    def begins_token(self, data: bytes) -> bool:
        """Whether ``data`` is the head of a token's bytes, or all of them."""


class TokenClasses:
    """Classes of the text tokens of ``vocabulary``, found when first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def prepare(self) -> None:
        """Find all classes now: some tens of milliseconds that no step should wait for."""
        for name, found in vars(type(self)).items():
            if isinstance(found, cached_property):
                getattr(self, name)

    def are_few(self, row: Row) -> bool:
        """Whether ``row`` allows few tokens, white space apart."""
        return bool(np.count_nonzero(row & self.visible) <= _FEW)

    @cached_property
    def visible(self) -> Row:
        """Those that are more than white space."""
        return self._where(lambda data: bool(data.strip(SPACE)))

    @cached_property
    def quoting(self) -> Row:
        """Those that may end a string."""
        return self._where(lambda data: b'"' in data)

    @cached_property
    def closing(self) -> Row:
        """Those that may end an array or an object."""
        return self._where(lambda data: b"]" in data or b"}" in data)

    @cached_property
    def following(self) -> Row:
        """Those that, after a value, do more than white space and the next key."""
        return self._where(lambda data: b"," in data or b"]" in data or b"}" in data)

    @cached_property
    def finishing(self) -> Row:
        """Those that, where a value is to begin, may begin and end one."""
        return self._where(lambda data: not _UNFINISHED.fullmatch(data))

    @cached_property
    def delimiting(self) -> Row:
        """Those that may end a number or literal."""
        return self._where(lambda data: not _PLAIN_NUMBER.fullmatch(data))

    @cached_property
    def lengthening(self) -> Row:
        """Those of `delimiting` that first go on with it."""
        return self._where(
            lambda data: data[0] not in b" \t\n\r,]}" and not _PLAIN_NUMBER.fullmatch(data)
        )

    @cached_property
    def repeating(self) -> Row:
        """Those that may end two items of one array, or hold a whole member of an object."""
        return self._where(lambda data: bool(_OBJECT.search(data)) or _ends_two(data))

    @cached_property
    def spaced(self) -> Row:
        """Those with white space, which is not kept of a text, and more."""
        return self._where(
            lambda data: bool(data.strip(SPACE)) and any(byte in SPACE for byte in data)
        )

    def _where(self, holds: Callable[[bytes], bool]) -> Row:
        tokens = self.vocabulary.token_bytes
        return bitmask.pack(
            (token for token in self.vocabulary.text_ids if holds(tokens[token])),
            self.vocabulary.size,
        )
