"""An open array or object of a JSON text, with what was in it so far."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import NamedTuple

from phloem.constrained.guards.equality import key_of
from phloem.constrained.guards.outline import Place
from phloem.constrained.guards.stock import Stock

NO_BOUNDS = (0, math.inf)


class Frame(NamedTuple):
    """An open container.

    Attributes:
        place: where it is; None if nothing is to be checked in it.
        is_array: whether it is no object.
        before: the items or members before the one at hand.
        start: where in the text that is kept the item at hand begins; None between items.
        keys: of the finished items, as by `key_of`; of an object, the names so far.
        texts: the finished items as they were written, sorted.
        escaped: whether any of them has an escape.
        risky: whether any of them can be begun again with no way left but to repeat it.
    """

    place: Place | None
    is_array: bool
    before: int = 0
    start: int | None = None
    keys: frozenset[Hashable] = frozenset()
    texts: tuple[bytes, ...] = ()
    escaped: bool = False
    risky: bool = False

    @property
    def stock(self) -> Stock | None:
        """The items it may have if they must differ, else None."""
        return self.place.stock if self.is_array and self.place is not None else None

    @property
    def counted(self) -> bool:
        """Whether its names must differ."""
        return not self.is_array and self.place is not None and self.place.counted

    @property
    def bounds(self) -> tuple[int, float]:
        """How many members it must and may have, as an object."""
        if self.is_array or self.place is None:
            return NO_BOUNDS
        return self.place.least, self.place.most

    def with_item(self, text: bytes, stock: Stock) -> Frame | None:
        """The frame after an item; None if it has an equal one."""
        key = key_of(text)
        if key in self.keys:
            return None
        place = bisect_right(self.texts, text)
        return self._replace(
            start=None,
            keys=self.keys | {key},
            texts=(*self.texts[:place], text, *self.texts[place:]),
            escaped=self.escaped or b"\\" in text,
            risky=self.risky or stock.may_run_out(text),
        )

    def may_run_out(self, text: bytes) -> bool:
        """Whether once the item at hand is finished, too, there may be none left to be written."""
        if self.stock is None:
            return False
        at_hand = self.start is not None and self.stock.may_run_out(text[self.start :])
        return self.risky or at_hand

    def rivals(self, text: bytes) -> tuple[bytes, ...]:
        """The items that begin as the one at hand, ``text`` being what is kept."""
        if self.start is None:
            return ()
        begun = text[self.start :]
        low = high = bisect_left(self.texts, begun)
        while high < len(self.texts) and self.texts[high].startswith(begun):
            high += 1
        return self.texts[low:high]
