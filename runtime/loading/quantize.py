"""Rounding weights to fewer bits as they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import quantize
from numpy.typing import NDArray
from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.loading.source import WeightSource

KINDS = {"int8": Kind.Q8_0, "int4": Kind.Q4_1}
BLOCK = 32
EVERY_TOKEN = {"model.embed_tokens.weight", "lm_head.weight"}
"""Matrices with a row for each token: at 4 bits they would cost more than all others together."""


class QuantizedSource:
    """A WeightSource whose matrices are rounded.

    ``int8`` rounds blocks of 32 weights to 8 bits with a scale; ``int4`` to 4 bits with a minimum
    too. Matrices that are in blocks already stay as they are. ``w8a8`` rounds to 8 bits with one
    scale for a row, whatever the matrix was stored as. Embeddings and heads get blocks of 8 bits,
    and those whose rows are no whole blocks stay dense.
    """

    def __init__(self, source: WeightSource, quantization: str) -> None:
        self.config: dict[str, Any] = source.config
        self._source = source
        self._quantization = quantization

    def names(self) -> set[str]:
        return self._source.names()

    def get(self, name: str) -> Tensor:
        return self._source.get(name)

    def blocks(self, name: str) -> Blocks | None:
        by_row = self._quantization == "w8a8" and name not in EVERY_TOKEN
        stored = self._source.blocks(name)
        if stored is not None and not by_row:
            return stored
        weight = self._source.get(name)
        if weight.ndim != 2 or weight.shape[1] % BLOCK:
            return stored
        floats = weight.float().numpy()
        if by_row:
            return Blocks("W8", round_rows(floats), weight.shape[1])
        kind = Kind.Q8_0 if name in EVERY_TOKEN else KINDS[self._quantization]
        return Blocks(kind.name, np.ascontiguousarray(quantize(floats, kind)), weight.shape[1])


def round_rows(weight: NDArray[np.float32]) -> NDArray[np.uint8]:
    """float32 [N, M] -> W8 rows, uint8 [N, 4 + M]: the largest weight of a row becomes 127."""
    scales = np.abs(weight).max(axis=1, keepdims=True) / np.float32(127)
    codes = np.rint(weight / np.where(scales > 0, scales, 1)).astype(np.int8)
    return np.concatenate((scales.view(np.uint8), codes.view(np.uint8)), axis=1)
