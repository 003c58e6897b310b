"""Residual additions and gated activations, fused with the maps before them and by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from native_runner import (
    EACH_EXACTNESS,
    EACH_KERNELS,
    RUNNING,
    Recorded,
    compute,
    native_ops,
    normal,
)
from stored_weights import Weight, assert_sums, make_weight, rounded_inputs
from torch import Tensor

from phloem.kernels.native.backend import NativeOps

EPS = 1e-5
ROWS = 1, 3, 50
KINDS = pytest.mark.parametrize("kind", ["F32", "BF16", "Q4_0", "Q4_K"])
GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": torch.nn.functional.silu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}

GATES_TO_TRY = [(name, gate) for name in RUNNING for gate in GATES]


def normalised(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * weight.double()


def assert_close(actual: Tensor, exact: Tensor) -> None:
    torch.testing.assert_close(actual.double(), exact, rtol=2e-5, atol=2e-5)


def mapped(x: Tensor, weight: Weight, kind: str, exact: bool) -> Tensor:
    """x W^T in float64."""
    return rounded_inputs(x, kind, exact) @ weight.values.T


def gate(ops: NativeOps, kind: str, x: Tensor) -> Tensor:
    return ops.silu_mul(x) if kind == "silu" else ops.gelu_mul(x)


def gated(gate_up: Tensor, kind: str) -> Tensor:
    first, second = gate_up.chunk(2, dim=-1)
    return GATES[kind](first) * second


@EACH_KERNELS
@EACH_EXACTNESS
@KINDS
@pytest.mark.parametrize("used_elsewhere", [False, True])
def test_residuals(kernels: str, exact: bool, kind: str, used_elsewhere: bool) -> None:
    """norm(x + W norm(x)), then the sum itself, by another norm of it."""
    ops = native_ops(kernels, exact=exact)
    x, weight, gain = normal(max(ROWS), 256), make_weight(kind, 256, 256), normal(256, seed=2)
    linear = ops.prepare_linear([weight.stored])

    def body(values: Tensor) -> Tensor:
        product = ops.linear(ops.rms_norm(values, gain, EPS), linear)
        normed, total = ops.add_rms_norm(product, values, gain, EPS)
        last = product if used_elsewhere else normed
        return ops.add_rms_norm(last, total, gain, EPS)[0]

    program = Recorded(ops, x, lambda values, *_: body(values))
    assert ("add" in program.names[:-2]) == used_elsewhere
    before = normalised(x.double(), gain).float()
    product = mapped(before, weight, kind, exact)
    total = x.double() + product
    last = product if used_elsewhere else normalised(total, gain)
    expected = normalised(last + total, gain)
    for rows in ROWS:
        actual = program.first(rows).double()
        error = (actual - expected[:rows]).abs() / (1 + expected[:rows].abs())
        # A value next to a rounding's edge may fall to the other side.
        assert error.median() < 2e-5 and error.max() < (1e-5 if kind == "F32" else 2e-2)


@EACH_KERNELS
@EACH_EXACTNESS
@KINDS
def test_a_sum_is_written_over_nothing_that_is_read_later(
    kernels: str, exact: bool, kind: str
) -> None:
    """The residual is needed after the sum, so it must not be added to in place."""
    ops = native_ops(kernels, exact=exact)
    x, weight, ones = normal(5, 256), make_weight(kind, 256, 256), torch.ones(256)
    linear = ops.prepare_linear([weight.stored])

    def body(values: Tensor) -> Tensor:
        residual = ops.rms_norm(values, ones, EPS)
        product = ops.linear(ops.rms_norm(values, ones, EPS), linear)
        normed, _ = ops.add_rms_norm(product, residual, ones, EPS)
        return ops.add_rms_norm(normed, residual, ones, EPS)[1]

    residual = normalised(x.double(), ones)
    total = residual + mapped(residual.float(), weight, kind, exact)
    error = compute(ops, x, body).double() - (normalised(total, ones) + residual)
    assert error.abs().median() < 2e-5 and error.abs().max() < (1e-5 if kind == "F32" else 2e-2)


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0"])
def test_a_map_of_what_it_is_added_to(kernels: str, exact: bool, kind: str) -> None:
    """x + W x: the map must have read x before it adds to it."""
    ops = native_ops(kernels, exact=exact)
    x, weight, ones = normal(50, 256), make_weight(kind, 256, 256), torch.ones(256)
    linear = ops.prepare_linear([weight.stored])
    actual = compute(
        ops, x, lambda values: ops.add_rms_norm(ops.linear(values, linear), values, ones, EPS)[0]
    )
    assert_close(actual, normalised(x.double() + mapped(x, weight, kind, exact), ones))


@EACH_KERNELS
def test_a_map_added_to_itself(kernels: str) -> None:
    ops = native_ops(kernels)
    x, weight, ones = normal(5, 64), make_weight("F32", 32, 64), torch.ones(32)
    linear = ops.prepare_linear([weight.stored])

    def body(values: Tensor) -> Tensor:
        product = ops.linear(values, linear)
        return ops.add_rms_norm(product, product, ones, 100.0)[0]

    total = 2 * mapped(x, weight, "F32", True)
    assert_close(
        compute(ops, x, body), total / (total.square().mean(-1, keepdim=True) + 100).sqrt()
    )


@EACH_KERNELS
def test_a_map_added_to_some_columns(kernels: str) -> None:
    ops = native_ops(kernels)
    x, weight, ones = normal(5, 96), make_weight("F32", 32, 96), torch.ones(96)
    linear = ops.prepare_linear([weight.stored])

    def body(values: Tensor) -> Tensor:
        product = ops.linear(ops.rms_norm(values, ones, EPS), linear)
        return ops.add_rms_norm(product, values[:, 64:], ones[:32], EPS)[0]

    total = x[:, 64:].double() + normalised(x.double(), ones) @ weight.values.T
    assert_close(compute(ops, x, body), normalised(total, ones[:32]))


@EACH_KERNELS
@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_sums_of_any_width(kernels: str, size: int) -> None:
    ops = native_ops(kernels)
    x = normal(5, 2 * size)
    actual = compute(
        ops, x, lambda v: ops.add_rms_norm(v[:, :size], v[:, size:], torch.ones(size), EPS)[1]
    )
    assert torch.equal(actual, x[:, :size] + x[:, size:])


@EACH_KERNELS
@EACH_EXACTNESS
@KINDS
@pytest.mark.parametrize("gate_kind", GATES)
@pytest.mark.parametrize("inner", [32, 96, 40])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gated_maps(
    kernels: str, exact: bool, kind: str, gate_kind: str, inner: int, with_bias: bool
) -> None:
    ops = native_ops(kernels, exact=exact)
    x = normal(max(ROWS), 256)
    parts = [make_weight(kind, inner, 256, seed=i) for i in range(2)]
    bias = normal(2 * inner, seed=3) if with_bias else None
    linear = ops.prepare_linear([part.stored for part in parts], bias)
    program = Recorded(ops, x, lambda values, *_: gate(ops, gate_kind, ops.linear(values, linear)))
    assert ("gated linear" in program.names) == (inner % 32 == 0)
    seen, weight = rounded_inputs(x, kind, exact), torch.cat([part.values for part in parts])
    products = seen @ weight.T + (0 if bias is None else bias.double())
    expected = gated(products, gate_kind)
    # An error of 1e-6 of the sums that are multiplied; the gate's slope is at most 1.2.
    size = (seen.abs() @ weight.abs().T).amax(dim=1, keepdim=True) + 10
    for rows in ROWS:
        error = (program.first(rows).double() - expected[:rows]).abs() / size[:rows].square()
        assert error.max() < 1e-6


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0"])
@pytest.mark.parametrize("gate_kind", GATES)
def test_a_map_of_gated_maps(kernels: str, exact: bool, kind: str, gate_kind: str) -> None:
    """A whole feed-forward layer: what is gated is kept only in the form that is read."""
    ops = native_ops(kernels, exact=exact)
    x, up, down = normal(50, 64), make_weight(kind, 192, 64), make_weight(kind, 48, 96, seed=1)
    maps = [ops.prepare_linear([each.stored]) for each in (up, down)]
    actual = compute(
        ops, x, lambda v: ops.linear(gate(ops, gate_kind, ops.linear(v, maps[0])), maps[1])
    )
    between = gated(mapped(x, up, kind, exact), gate_kind).float()
    seen = rounded_inputs(between, kind, exact)
    error = (actual.double() - seen @ down.values.T).abs() / (seen.abs() @ down.values.abs().T)
    assert error.median() < 1e-5 and error.max() < 2e-3


@pytest.mark.parametrize("kernels, gate_kind", GATES_TO_TRY)
def test_gates_of_any_number(kernels: str, gate_kind: str) -> None:
    """From -1e30 to 1e30: no value may become nan, or be off by more than rounding."""
    ops = native_ops(kernels)
    small, large = torch.linspace(-30, 30, 601), torch.logspace(1, 30, 200)
    given = torch.cat([small, large, -large, torch.tensor([-88.0, -89.0, -100.0, 0.0, -0.0])])
    x = torch.stack([given, torch.ones(len(given))], dim=1)
    actual = compute(ops, x, lambda values: gate(ops, gate_kind, values))[:, 0]
    exact = GATES[gate_kind](given.double())
    torch.testing.assert_close(actual.double(), exact, rtol=1e-6, atol=2e-6)


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kinds", [("Q4_0", "Q8_0"), ("F32", "BF16")])
def test_gates_of_parts_of_two_types(kernels: str, exact: bool, kinds: tuple[str, str]) -> None:
    ops = native_ops(kernels, exact=exact)
    x, parts = normal(5, 64), [make_weight(kind, 32, 64) for kind in kinds]
    linear = ops.prepare_linear([part.stored for part in parts])
    actual = compute(ops, x, lambda values: ops.silu_mul(ops.linear(values, linear)))
    products = [mapped(x, part, kind, exact) for part, kind in zip(parts, kinds, strict=True)]
    expected = gated(torch.cat(products, dim=1), "silu")
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-4)


@EACH_KERNELS
def test_a_product_that_is_read_twice_is_not_fused_away(kernels: str) -> None:
    ops = native_ops(kernels)
    x, up, ones = normal(5, 64), make_weight("F32", 64, 64), torch.ones(32)
    linear = ops.prepare_linear([up.stored])

    def body(values: Tensor) -> Tensor:
        product = ops.linear(values, linear)
        return ops.add_rms_norm(ops.silu_mul(product), product[:, 32:], ones, EPS)[1]

    product = mapped(x, up, "F32", True)
    actual = compute(ops, x, body)
    torch.testing.assert_close(
        actual.double(), gated(product, "silu") + product[:, 32:], rtol=1e-4, atol=1e-4
    )
    assert_sums(compute(ops, x, lambda v: ops.linear(v, linear)), up.values, x.double())
