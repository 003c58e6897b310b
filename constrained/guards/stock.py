"""What new items there still can be for an array whose items must differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto

from phloem.constrained.guards.equality import key_of

_KINDS = {b'"': "string", b"{": "object", b"[": "array"}
_LITERAL_HEADS = (b"t", b"f", b"n")
_NUMBERS = ("number", "integer")
_ZERO = (b"0", b"-0")


class Outlook(Enum):
    """What can be said of an item that is begun as earlier ones are."""

    OPEN = auto()
    """It can become a new one."""
    DEAD = auto()
    """It cannot."""
    UNCLEAR = auto()


@dataclass(frozen=True, slots=True)
class Stock:
    """The items an array may have.

    Attributes:
        endless: the types whose values, however begun, can go on in ways without number.
        listed: all items, as they are written, sorted; None if they are too many.
    """

    endless: frozenset[str] = frozenset()
    listed: Sequence[bytes] | None = None
    keys: Sequence[Hashable] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(map(key_of, self.listed or ())))

    def may_run_out(self, item: bytes) -> bool:
        """Whether what begins as ``item`` could have no way left but to repeat it."""
        if self.listed is not None:
            return True
        return not self._is_endless(item) or (item in _ZERO and "number" not in self.endless)

    def outlook(self, begun: bytes, used: AbstractSet[Hashable]) -> Outlook:
        """Of an item whose text so far is ``begun``, as is that of an earlier item."""
        if self.listed is not None:
            return Outlook.OPEN if self._has_more(begun, used) else Outlook.DEAD
        if begun.startswith(_LITERAL_HEADS):
            return Outlook.DEAD
        if not self._is_endless(begun):
            return Outlook.UNCLEAR
        is_end = begun in _ZERO and "number" not in self.endless  # no digit follows 0
        return Outlook.DEAD if is_end and 0 in used else Outlook.OPEN

    def _has_more(self, begun: bytes, used: AbstractSet[Hashable]) -> bool:
        listed = self.listed or ()
        index = bisect_left(listed, begun)
        while index < len(listed) and listed[index].startswith(begun):
            if self.keys[index] not in used:
                return True
            index += 1
        return False

    def _is_endless(self, begun: bytes) -> bool:
        if not begun:
            return bool(self.endless)
        if begun.startswith(_LITERAL_HEADS):
            return False
        kind = _KINDS.get(begun[:1])
        return kind in self.endless if kind else not self.endless.isdisjoint(_NUMBERS)
