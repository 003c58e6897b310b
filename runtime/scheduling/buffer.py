"""A growable int32 array: tokens and page tables are appended to at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


class IntBuffer:
    """An int32 list whose contents are a numpy view; appending is amortised O(1)."""

    __slots__ = ("_array", "_length")

    def __init__(self, values: Sequence[int] | Ints = ()) -> None:
        self._array: Ints = np.array(values, dtype=np.int32)
        self._length = len(values)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        """The value at an index below the length."""
        return self._array.item(index)

    def view(self) -> Ints:
        """The contents; valid until the next change."""
        return self._array[: self._length]

    def extend(self, values: Sequence[int] | Ints) -> None:
        needed = self._length + len(values)
        if needed > len(self._array):
            grown = np.empty(max(needed, 2 * len(self._array), 16), dtype=np.int32)
            grown[: self._length] = self.view()
            self._array = grown
        self._array[self._length : needed] = values
        self._length = needed

    def append(self, value: int) -> None:
        if self._length == len(self._array):
            self.extend((value,))
            return
        self._array[self._length] = value
        self._length += 1

    def truncate(self, length: int) -> None:
        self._length = min(self._length, length)
