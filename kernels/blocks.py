"""Weights as a file stores them: rows of quantised blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Blocks:
    """A weight matrix in one of GGUF's block formats.

    Attributes:
        kind: GGUF's name of the format, such as "Q4_1".
        data: uint8 [N, bytes of a row].
        columns: M, weights of a row.
    """

    kind: str
    data: NDArray[np.uint8]
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.data), self.columns


StoredWeight = Tensor | Blocks
"""A weight [N, M], dense or in blocks."""
