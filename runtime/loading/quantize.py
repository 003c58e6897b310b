"""Rounding dense weights to 8 or 4 bits as they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import quantize
from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.loading.source import WeightSource

KINDS = {"int8": Kind.Q8_0, "int4": Kind.Q4_1}
BLOCK = 32
EVERY_TOKEN = {"model.embed_tokens.weight", "lm_head.weight"}
"""Matrices with a row for each token: at 4 bits they would cost more than all others together."""


class QuantizedSource:
    """A WeightSource whose matrices come in blocks of 32 weights with a scale.

    ``int8`` rounds to 8 bits; ``int4`` to 4 bits, with a minimum too, but embeddings and heads to
    8. Matrices that are in blocks already stay as they are, and those whose rows are no whole
    blocks stay dense.
    """

    def __init__(self, source: WeightSource, quantization: str) -> None:
        self.config: dict[str, Any] = source.config
        self._source = source
        self._kind = KINDS[quantization]

    def names(self) -> set[str]:
        return self._source.names()

    def get(self, name: str) -> Tensor:
        return self._source.get(name)

    def blocks(self, name: str) -> Blocks | None:
        stored = self._source.blocks(name)
        if stored is not None:
            return stored
        weight = self._source.get(name)
        if weight.ndim != 2 or weight.shape[1] % BLOCK:
            return None
        kind = Kind.Q8_0 if name in EVERY_TOKEN else self._kind
        rows = quantize(weight.float().numpy(), kind)
        return Blocks(kind.name, np.ascontiguousarray(rows), weight.shape[1])
