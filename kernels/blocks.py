"""Weights as a file stores them: rows of quantised blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Blocks:
    """A weight matrix in one of GGUF's block formats, or in W8: rows of a float32 scale and then
    signed bytes that it multiplies.

    Attributes:
        kind: GGUF's name of the format, such as "Q4_1", or "W8".
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


def check_parts(parts: Sequence[StoredWeight], bias: Tensor | None) -> None:
    """Check that weights can be stacked and fit a bias.

    Raises:
        ValueError: they do not.
    """
    shapes = [tuple(part.shape) for part in parts]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
        raise ValueError(f"weights {shapes} are not maps of one input")
    rows = sum(shape[0] for shape in shapes)
    if bias is not None and tuple(bias.shape) != (rows,):
        raise ValueError(f"a bias {tuple(bias.shape)} does not fit a map to {rows} outputs")
