"""Norms, rotary embedding, activations and linear maps against their formulas in float64."""

from __future__ import annotations

import math

import pytest
import torch
from paging import ragged_batch
from torch import Tensor

from phloem.kernels.reference.backend import ReferenceOps

OPS = ReferenceOps()
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2**-7}
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def assert_close(actual: Tensor, exact: Tensor) -> None:
    tolerance = TOLERANCE[actual.dtype]
    torch.testing.assert_close(actual.double(), exact, rtol=tolerance, atol=tolerance)


@DTYPES
def test_rms_norm(dtype: torch.dtype) -> None:
    x, weight = torch.randn(7, 3, 40).to(dtype) * 100, torch.randn(40).to(dtype)
    wide = x.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    out = OPS.rms_norm(x, weight, 1e-5)
    assert out.dtype == dtype
    assert_close(out, exact)


@DTYPES
def test_add_rms_norm(dtype: torch.dtype) -> None:
    x, residual, weight = (torch.randn(5, 16).to(dtype) for _ in range(3))
    normed, total = OPS.add_rms_norm(x, residual, weight[0], 1e-6)
    assert torch.equal(total, x + residual)
    assert torch.equal(normed, OPS.rms_norm(total, weight[0], 1e-6))


@DTYPES
def test_activations(dtype: torch.dtype) -> None:
    gate, up = torch.linspace(-200, 200, 97).to(dtype), torch.randn(97).to(dtype)
    both, g, u = torch.cat([gate, up])[None], gate.double(), up.double()
    assert_close(OPS.silu_mul(both)[0], torch.nn.functional.silu(g) * u)
    assert_close(OPS.gelu_mul(both)[0], torch.nn.functional.gelu(g, approximate="tanh") * u)


@DTYPES
@pytest.mark.parametrize("rotated", [16, 10])
def test_rope_and_cache(dtype: torch.dtype, rotated: int) -> None:
    spans, tables = [(3, 9), (1, 4)], [[2, 5, 1], [3]]
    batch = ragged_batch(spans, tables, page_size=4)
    q, k, v = (torch.randn(4, heads, 16).to(dtype) for heads in (6, 2, 2))
    angles = torch.randn(9, rotated // 2)
    rope = torch.stack([angles.cos(), angles.sin()], dim=1) * 1.5
    kv = torch.full((7, 4, 2, 16), torch.nan, dtype=dtype), torch.zeros(7, 4, 2, 16, dtype=dtype)
    rotated_q = OPS.rope_and_cache(q, k, v, rope, kv, batch)
    places = [(5, 2), (5, 3), (1, 0), (3, 3)]
    for row, (position, (page, offset)) in enumerate(zip([6, 7, 8, 3], places, strict=True)):
        assert_close(rotated_q[row], rotate(q[row], angles[position]))
        assert_close(kv[0][page, offset], rotate(k[row], angles[position]))
        assert torch.equal(kv[1][page, offset], v[row])
    assert int(kv[0].isnan().any(dim=(2, 3)).sum()) == 7 * 4 - 4  # nothing else was written


def rotate(heads: Tensor, angles: Tensor) -> Tensor:
    """Rotate pair i of each head by ``angles[i]``, written as complex numbers; times 1.5."""
    half = len(angles)
    first, second, rest = heads.double().split((half, half, heads.shape[-1] - 2 * half), dim=-1)
    turned = torch.complex(first, second) * torch.polar(
        torch.full_like(angles, 1.5).double(), angles.double()
    )
    return torch.cat([turned.real, turned.imag, rest], dim=-1)


@DTYPES
@pytest.mark.parametrize("bias", [None, torch.randn(30)])
def test_linear_and_logits(dtype: torch.dtype, bias: Tensor | None) -> None:
    weight, x = torch.randn(30, 64).to(dtype), torch.randn(9, 128).to(dtype)[:, 32:96]
    bias = None if bias is None else bias.to(dtype)
    linear = OPS.prepare_linear([weight], bias)
    exact = x.double() @ weight.double().T + (0 if bias is None else bias.double())
    torch.testing.assert_close(
        OPS.linear(x, linear).double(), exact, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype]
    )
    rows = torch.tensor([8, 0])
    capped = OPS.logits(x, rows, linear, softcap=5.0)
    assert capped.dtype == torch.float32
    torch.testing.assert_close(
        capped.double(), 5 * (exact[rows] / 5).tanh(), rtol=0, atol=20 * TOLERANCE[dtype]
    )
    assert OPS.logits(x, rows[:0], linear).shape == (0, 30)


def test_a_linear_map_needs_matching_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(3,\)"):
        OPS.prepare_linear([torch.zeros(2, 4)], torch.zeros(3))


def test_embedding() -> None:
    weight = torch.randn(10, 4)
    ids = torch.tensor([3, 0, 3])
    table = OPS.prepare_embedding(weight)
    assert torch.equal(OPS.embedding(ids, table), weight[ids])
    assert torch.equal(OPS.embedding(ids, table, math.sqrt(2)), weight[ids] * math.sqrt(2))
