"""Rounding dense weights as they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import dequantize
from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.loading.quantize import QuantizedSource


class Dense:
    """A WeightSource of a few tensors."""

    config: dict[str, Any]

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.config = {}
        self._tensors = tensors

    def names(self) -> set[str]:
        return set(self._tensors)

    def get(self, name: str) -> Tensor:
        return self._tensors[name]

    def blocks(self, name: str) -> Blocks | None:
        return None


class InBlocks(Dense):
    """A WeightSource whose weights are all stored in these blocks."""

    def __init__(self, tensors: dict[str, Tensor], stored: Blocks) -> None:
        super().__init__(tensors)
        self._stored = stored

    def blocks(self, name: str) -> Blocks | None:
        return self._stored


def quantized(weight: Tensor, quantization: str, name: str = "a.weight") -> Blocks | None:
    return QuantizedSource(Dense({name: weight}), quantization).blocks(name)


@pytest.mark.parametrize(
    ("quantization", "kind", "steps"), [("int8", "Q8_0", 254), ("int4", "Q4_1", 15)]
)
def test_weights_are_rounded_to_their_blocks_steps(
    quantization: str, kind: str, steps: int
) -> None:
    weight = torch.randn(5, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    blocks = quantized(weight, quantization)
    assert blocks is not None
    assert (blocks.kind, blocks.shape) == (kind, (5, 64))
    rounded = torch.from_numpy(dequantize(blocks.data, Kind[kind]))
    values = weight.float().view(5, 2, 32)
    if quantization == "int8":
        extent = 2 * values.abs().amax(-1)
    else:
        extent = values.amax(-1) - values.amin(-1)
    error = (rounded.view(5, 2, 32) - values).abs().amax(-1)
    assert bool((error <= 0.51 * extent / steps + 0.001 * extent).all())


def test_w8a8_gives_each_row_one_scale() -> None:
    weight = (
        torch.randn(5, 64, generator=torch.Generator().manual_seed(0)) * torch.arange(5)[:, None]
    )
    blocks = quantized(weight, "w8a8")
    assert blocks is not None
    assert (blocks.kind, blocks.shape) == ("W8", (5, 64))
    scales = torch.from_numpy(blocks.data[:, :4].copy().view(np.float32))
    codes = torch.from_numpy(blocks.data[:, 4:].view(np.int8))
    assert codes.abs().amax(-1).tolist() == [0, 127, 127, 127, 127]
    assert bool(((codes * scales - weight).abs() <= 0.501 * scales).all())


def test_w8a8_rounds_what_is_in_blocks_already() -> None:
    stored = quantized(torch.randn(5, 64), "int4")
    assert stored is not None
    source = InBlocks({"a.weight": torch.from_numpy(dequantize(stored.data, Kind.Q4_1))}, stored)
    by_row = QuantizedSource(source, "w8a8").blocks("a.weight")
    assert by_row is not None
    assert by_row.kind == "W8"
    assert QuantizedSource(source, "int8").blocks("a.weight") is stored
    assert QuantizedSource(source, "w8a8").blocks("lm_head.weight") is stored


def test_tables_of_all_tokens_keep_8_bits() -> None:
    blocks = quantized(torch.randn(5, 32), "int4", "model.embed_tokens.weight")
    assert blocks is not None
    assert blocks.kind == "Q8_0"


@pytest.mark.parametrize("shape", [(64,), (4, 40)])
def test_what_is_no_matrix_of_whole_blocks_stays_dense(shape: tuple[int, ...]) -> None:
    assert quantized(torch.randn(shape), "int8") is None
