"""Linear maps of all stored types against sums in float64."""

from __future__ import annotations

import math

import pytest
import torch
from native_runner import EACH_EXACTNESS, EACH_KERNELS, Recorded, compute, native_ops, normal
from stored_weights import (
    ALL,
    DENSE,
    LARGE,
    QUANTIZED,
    assert_sums,
    make_weight,
    random_weight,
    rounded_inputs,
)

ROWS = 1, 2, 3, 4, 5, 8, 12, 13, 47, 48, 49, 100
SHAPES = (1, 96), (15, 32), (16, 576), (17, 256), (48, 96), (100, 32), (100, 576)
SHAPES_OF_LARGE = (1, 256), (15, 256), (16, 512), (17, 256), (48, 512), (100, 512)
EACH_KIND = pytest.mark.parametrize("kind", ALL)


@EACH_KERNELS
@EACH_EXACTNESS
@EACH_KIND
def test_any_shape(kernels: str, exact: bool, kind: str) -> None:
    ops = native_ops(kernels, exact=exact)
    for outputs, inputs in SHAPES_OF_LARGE if kind in LARGE else SHAPES:
        x, weight = normal(max(ROWS), inputs, seed=outputs), make_weight(kind, outputs, inputs)
        linear = ops.prepare_linear([weight.stored])
        program = Recorded(ops, x, lambda values, *_: ops.linear(values, linear))  # noqa: B023
        seen = rounded_inputs(x, kind, exact)
        for rows in ROWS:
            assert_sums(program.first(rows), weight.values, seen[:rows])


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", QUANTIZED)
def test_every_code(kernels: str, exact: bool, kind: str) -> None:
    ops = native_ops(kernels, exact=exact)
    x, weight = normal(13, 512), random_weight(kind, 100, 512)
    x[:, ::7] *= 100
    linear = ops.prepare_linear([weight.stored])
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    assert_sums(actual, weight.values, rounded_inputs(x, kind, exact))


@EACH_KERNELS
@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize("inputs", [1, 3, 31, 77])
def test_dense_weights_take_any_number_of_inputs(kernels: str, kind: str, inputs: int) -> None:
    ops = native_ops(kernels)
    x, weight = normal(13, inputs), make_weight(kind, 33, inputs)
    linear = ops.prepare_linear([weight.stored])
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    assert_sums(actual, weight.values, rounded_inputs(x, kind, exact=True))


@EACH_KERNELS
@EACH_EXACTNESS
@EACH_KIND
@pytest.mark.parametrize("with_bias", [True, False])
def test_parts_of_one_type(kernels: str, exact: bool, kind: str, with_bias: bool) -> None:
    ops = native_ops(kernels, exact=exact)
    x = normal(5, 256)
    parts = [make_weight(kind, rows, 256, seed=rows) for rows in (20, 7, 70)]
    bias = normal(97, seed=1) * 10 if with_bias else None
    linear = ops.prepare_linear([part.stored for part in parts], bias)
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    stacked = torch.cat([part.values for part in parts])
    assert_sums(actual, stacked, rounded_inputs(x, kind, exact), bias)


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kinds", [("Q4_0", "Q4_0", "Q8_0"), ("Q6_K", "F32", "BF16", "Q4_K")])
def test_parts_of_several_types(kernels: str, exact: bool, kinds: tuple[str, ...]) -> None:
    ops = native_ops(kernels, exact=exact)
    x, bias = normal(5, 256), normal(sum(range(17, 17 + len(kinds))))
    parts = [make_weight(kind, 17 + i, 256, seed=i) for i, kind in enumerate(kinds)]
    linear = ops.prepare_linear([part.stored for part in parts], bias)
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    row = 0
    for kind, part in zip(kinds, parts, strict=True):
        columns = slice(row, row + len(part.values))
        seen = rounded_inputs(x, kind, exact)
        assert_sums(actual[:, columns], part.values, seen, bias[columns])
        row = columns.stop


@EACH_KERNELS
@EACH_EXACTNESS
@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0"])
def test_a_map_of_a_map(kernels: str, exact: bool, kind: str) -> None:
    """The second reads what the first wrote, in whatever form it wants."""
    ops = native_ops(kernels, exact=exact)
    x = normal(9, 64)
    first, second = make_weight("F32", 96, 64), make_weight(kind, 20, 96, seed=1)
    maps = [ops.prepare_linear([each.stored]) for each in (first, second)]
    actual = compute(ops, x, lambda values: ops.linear(ops.linear(values, maps[0]), maps[1]))
    between = (x.double() @ first.values.T).float()
    seen = rounded_inputs(between, kind, exact)
    error = (actual.double() - seen @ second.values.T).abs() / (seen.abs() @ second.values.abs().T)
    # What lies next to a rounding's edge may fall to the other side.
    assert error.median() < 1e-5 and error.max() < 1e-3


@EACH_KERNELS
@pytest.mark.parametrize(
    "kind, exact",
    [
        ("F32", True),
        ("Q8_0", True),
        ("BF16", True),
        ("Q8_0", False),
    ],
)
def test_a_map_of_some_columns(kernels: str, exact: bool, kind: str) -> None:
    ops = native_ops(kernels, exact=exact)
    x, weight = normal(5, 128), make_weight(kind, 20, 64)
    linear = ops.prepare_linear([weight.stored])
    actual = compute(ops, x, lambda values: ops.linear(values[:, 64:], linear))
    assert_sums(actual, weight.values, rounded_inputs(x[:, 64:].contiguous(), kind, exact))


@EACH_KERNELS
@pytest.mark.parametrize("exact", [True, False])
def test_a_map_of_what_parts_of_several_types_made(kernels: str, exact: bool) -> None:
    ops = native_ops(kernels, exact=exact)
    x, parts = normal(5, 64), [make_weight("F32", 32, 64), make_weight("BF16", 64, 64)]
    last = make_weight("Q8_0", 20, 96)
    maps = [ops.prepare_linear([part.stored for part in parts]), ops.prepare_linear([last.stored])]
    actual = compute(ops, x, lambda values: ops.linear(ops.linear(values, maps[0]), maps[1]))
    between = torch.cat(
        [x.double() @ parts[0].values.T, x.bfloat16().double() @ parts[1].values.T], dim=1
    )
    seen = rounded_inputs(between.float(), "Q8_0", exact)
    error = (actual.double() - seen @ last.values.T).abs() / (seen.abs() @ last.values.abs().T)
    assert error.median() < 1e-5 and error.max() < 1e-3


@EACH_KERNELS
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e30])
def test_activations_of_any_size_are_rounded(kernels: str, value: float) -> None:
    ops = native_ops(kernels, exact=False)
    x, weight = normal(4, 64) * value, make_weight("Q4_0", 16, 64)
    linear = ops.prepare_linear([weight.stored])
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    if value == 0:
        assert not actual.any()
    else:
        assert_sums(actual / value, weight.values, rounded_inputs(x, "Q4_0", False) / value)


@EACH_KERNELS
@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0", "Q6_K", "W8"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_hidden_by_rounding(
    kernels: str, kind: str, value: float
) -> None:
    ops = native_ops(kernels, exact=False)
    x, weight = normal(3, 256), make_weight(kind, 16, 256)
    x[1, 100] = value
    linear = ops.prepare_linear([weight.stored])
    actual = compute(ops, x, lambda values: ops.linear(values, linear))
    assert actual[1].isnan().all()
    assert_sums(actual[::2], weight.values, rounded_inputs(x[::2].contiguous(), kind, False))


def test_a_bias_must_fit() -> None:
    ops = native_ops("portable")
    with pytest.raises(ValueError, match=r"\(3,\)"):
        ops.prepare_linear([torch.zeros(2, 4)], torch.zeros(3))


def test_parts_are_maps_of_one_input() -> None:
    ops = native_ops("portable")
    with pytest.raises(ValueError, match="one input"):
        ops.prepare_linear([torch.zeros(2, 4), torch.zeros(2, 5)])
