"""Weights of every stored type with their values in float64."""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import numpy as np
import torch
from ggml_blocks import HALVES
from gguf import GGMLQuantizationType as Kind
from native_runner import normal
from numpy.typing import NDArray
from torch import Tensor

from phloem.kernels.blocks import Blocks, StoredWeight
from phloem.runtime.loading.quantize import round_rows

DENSE = "F32", "BF16"
SMALL = "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"
LARGE = "Q4_K", "Q5_K", "Q6_K"
QUANTIZED = (*SMALL, *LARGE, "W8")
ALL = DENSE + QUANTIZED


@dataclass(frozen=True)
class Weight:
    stored: StoredWeight
    values: Tensor
    """float64 [N, M]."""


def make_weight(kind: str, rows: int, columns: int, seed: int = 0) -> Weight:
    """Quantised from normally distributed numbers where gguf can, else any blocks."""
    dense = normal(rows, columns, seed=seed)
    if kind in DENSE:
        weight = dense.bfloat16() if kind == "BF16" else dense
        return Weight(weight, weight.double())
    if kind == "W8":
        return row_scaled(round_rows(dense.numpy()), columns)
    if kind in LARGE:
        return random_weight(kind, rows, columns, seed)
    return blocks_of(kind, gguf.quants.quantize(dense.numpy(), Kind[kind]), columns)


def random_weight(kind: str, rows: int, columns: int, seed: int = 0) -> Weight:
    """Random bytes, so that every code occurs, with the factors of each block moderate numbers."""
    random = np.random.default_rng(seed)
    if kind == "W8":
        scales = random.uniform(-0.1, 0.1, (rows, 1)).astype(np.float32)
        codes = random.integers(0, 256, (rows, columns), dtype=np.uint8)
        return row_scaled(np.concatenate((scales.view(np.uint8), codes), axis=1), columns)
    elements, size = gguf.GGML_QUANT_SIZES[Kind[kind]]
    blocks = random.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    most = 0.002 if kind in LARGE else 0.1  # those have scales of 6 or 8 bits beside it
    for at in HALVES[Kind[kind]]:
        factors = random.uniform(-most, most, len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = factors.view(np.uint8).reshape(-1, 2)
    return blocks_of(kind, blocks.reshape(rows, -1), columns)


def blocks_of(kind: str, data: NDArray[np.uint8], columns: int) -> Weight:
    values = torch.from_numpy(gguf.quants.dequantize(data, Kind[kind]))
    return Weight(Blocks(kind, data, columns), values.double())


def row_scaled(data: NDArray[np.uint8], columns: int) -> Weight:
    scales = data[:, :4].copy().view(np.float32).astype(np.float64)
    values = data[:, 4:].view(np.int8) * scales
    return Weight(Blocks("W8", data, columns), torch.from_numpy(values))


def rounded_inputs(x: Tensor, kind: str, exact: bool) -> Tensor:
    """float64: the activations as a map of this type sees them."""
    if kind == "BF16":
        return x.bfloat16().double()
    return x.double() if exact or kind == "F32" else through_int8(x)


def head_inputs(x: Tensor, kind: str, exact: bool) -> Tensor:
    """The same for the head, which sees 16 bits where other maps see 8."""
    if exact or kind not in QUANTIZED:
        return rounded_inputs(x, kind, exact)
    return through_int8(x, fine=True)


def through_int8(x: Tensor, *, fine: bool = False) -> Tensor:
    """Rounded to 8 bits in blocks of 32, with the arithmetic of float32.

    With ``fine``, what that leaves of a value is rounded to 254ths and added.
    """
    blocks = x.numpy().reshape(len(x), -1, 32)
    largest = np.abs(blocks).max(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    codes = np.rint(blocks * inverse)
    rest = np.rint((blocks * inverse - codes) * 254) / 254 if fine else 0
    scales = (largest * (np.float32(1) / np.float32(127))).astype(np.float64)
    return torch.from_numpy(((codes.astype(np.float64) + rest) * scales).reshape(x.shape))


def assert_sums(actual: Tensor, weight: Tensor, x: Tensor, bias: Tensor | None = None) -> None:
    """``actual`` is x W^T + b but for the rounding of a float32 sum; all others float64."""
    exact, size = x @ weight.T, x.abs() @ weight.abs().T
    if bias is not None:
        exact, size = exact + bias.double(), size + bias.double().abs()
    error = ((actual.double() - exact).abs() / (size + 1e-30)).max().item()
    assert error < 1e-5, f"off by {error:.2g} of the sum of |w x|"
