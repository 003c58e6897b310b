"""Norms, embeddings and logits against their formulas in float64."""

from __future__ import annotations

import math

import pytest
import torch
from native_runner import EACH_EXACTNESS, EACH_KERNELS, compute, native_ops, normal, one_request
from stored_weights import ALL, LARGE, QUANTIZED, assert_sums, head_inputs, random_weight
from stored_weights import make_weight as make
from torch import Tensor

from phloem.kernels.native.backend import NativeOps
from phloem.kernels.ops import Linear

ROWS = 12


@EACH_KERNELS
@pytest.mark.parametrize("size", [1, 5, 15, 16, 17, 48, 100, 576])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_rms_norm(kernels: str, size: int, scale: float) -> None:
    ops = native_ops(kernels)
    x, weight = normal(ROWS, size) * scale, normal(size, seed=1)
    actual = compute(ops, x, lambda values: ops.rms_norm(values, weight, 1e-5))
    wide = x.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    torch.testing.assert_close(actual.double(), exact, rtol=2e-6, atol=1e-9)


@EACH_KERNELS
@pytest.mark.parametrize("heads, size", [(1, 64), (3, 20), (7, 5)])
def test_rms_norm_of_heads(kernels: str, heads: int, size: int) -> None:
    """Each head by itself, of some columns of the values."""
    ops = native_ops(kernels)
    x, weight = normal(ROWS, 11 + heads * size), normal(size, seed=1)
    actual = compute(ops, x, lambda v: ops.rms_norm(v[:, 11:].view(-1, heads, size), weight, 1e-5))
    wide = x[:, 11:].double().reshape(ROWS, heads, size)
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    torch.testing.assert_close(actual.double(), exact.flatten(1), rtol=2e-6, atol=1e-9)


@EACH_KERNELS
def test_a_norm_of_nothing_is_nothing(kernels: str) -> None:
    ops = native_ops(kernels)
    actual = compute(ops, torch.zeros(2, 20), lambda v: ops.rms_norm(v, torch.ones(20), 1e-6))
    assert not actual.any()


@EACH_KERNELS
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("scale", [1.0, math.sqrt(512)])
def test_embedding(kernels: str, kind: str, scale: float) -> None:
    ops = native_ops(kernels)
    weight = make(kind, 50, 512) if kind not in QUANTIZED else random_weight(kind, 50, 512)
    ids = torch.tensor([49, 0, 7, 7, 16, 31, 32, 48])
    views = []

    def step(token_ids: Tensor, *_: object) -> Tensor:
        out = ops.embedding(token_ids, ops.prepare_embedding(weight.stored), scale)
        views.append(ops.tape.view(out))
        return out

    run = ops.compile(step, [])
    run(ids, one_request(len(ids)), torch.empty(0, dtype=torch.int64))
    actual = ops.programs.pop().read(views[0], len(ids))
    # A quantised weight is a difference of two numbers that are rounded to float32.
    atol = 1e-4 if kind in QUANTIZED else 0
    torch.testing.assert_close(actual.double(), weight.values[ids] * scale, rtol=1e-6, atol=atol)


@EACH_KERNELS
@pytest.mark.parametrize("kind", ["F32", "BF16"])
def test_embedding_rows_of_any_size(kernels: str, kind: str) -> None:
    ops = native_ops(kernels)
    for size in (1, 3, 15, 33):
        weight = make(kind, 9, size)
        actual = compute(ops, weight.values.float(), lambda values: values)
        assert torch.equal(actual.double(), weight.values)


def logits(
    ops: NativeOps, x: Tensor, rows: Tensor, head: Linear, softcap: float | None = None
) -> Tensor:
    run = ops.compile(
        lambda ids, batch, kv, rows: ops.logits(
            ops.embedding(ids, ops.prepare_embedding(x)), rows, head, softcap
        ),
        [],
    )
    ops.programs.pop()
    return run(torch.arange(len(x)), one_request(len(x)), rows).clone()


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", ["F32", "BF16", "Q4_1", "Q6_K"])
@pytest.mark.parametrize("vocabulary", [1, 33, 257])
@pytest.mark.parametrize("rows", [[11], [3, 0, 3, 10], list(range(12)) * 5], ids=len)
def test_logits(kernels: str, exact: bool, kind: str, vocabulary: int, rows: list[int]) -> None:
    ops = native_ops(kernels, exact=exact)
    x, weight = normal(ROWS, 256), make(kind, vocabulary, 256)
    head = ops.prepare_linear([weight.stored], bias := normal(vocabulary, seed=4))
    actual = logits(ops, x, torch.tensor(rows), head)
    assert_sums(actual, weight.values, head_inputs(x[rows], kind, exact), bias)


@EACH_KERNELS
def test_logits_of_no_rows(kernels: str) -> None:
    ops = native_ops(kernels)
    head = ops.prepare_linear([normal(7, 4)])
    assert logits(ops, normal(3, 4), torch.empty(0, dtype=torch.int64), head).shape == (0, 7)


@EACH_KERNELS
@pytest.mark.parametrize("vocabulary", [5, 100])
def test_logits_are_capped(kernels: str, vocabulary: int) -> None:
    ops = native_ops(kernels)
    x, weight = normal(60, 64), make("F32", vocabulary, 64)
    x[0] *= 1e4
    actual = logits(ops, x, torch.arange(60), ops.prepare_linear([weight.stored]), softcap=5.0)
    exact = 5 * (x.double() @ weight.values.T / 5).tanh()
    torch.testing.assert_close(actual.double(), exact, rtol=0, atol=2e-5)


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0", *LARGE])
def test_the_head_can_be_the_embedding(kernels: str, exact: bool, kind: str) -> None:
    ops = native_ops(kernels, exact=exact)
    weight = random_weight(kind, 70, 256) if kind in QUANTIZED else make(kind, 70, 256)
    table = ops.prepare_embedding(weight.stored)
    run = ops.compile(
        lambda ids, batch, kv, rows: ops.logits(
            ops.embedding(ids, table), rows, ops.tied_linear(table)
        ),
        [],
    )
    ops.programs.pop()
    ids = torch.tensor([69, 3, 16])
    actual = run(ids, one_request(3), torch.arange(3))
    seen = head_inputs(weight.values[ids].float(), kind, exact)
    error = (actual.double() - seen @ weight.values.T).abs()
    assert (error / (seen.abs() @ weight.values.abs().T)).max() < 2e-5
