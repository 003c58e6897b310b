"""Random steps over ops that do not look at pages, with what they compute in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from native_runner import normal
from stored_weights import Weight, make_weight
from torch import Tensor

from phloem.kernels.native.backend import NativeOps

WIDTH = 64
EPS = 1e-5
GAIN = torch.linspace(0.5, 1.5, WIDTH)

Pair = tuple[Tensor, Tensor]
"""A placeholder of the recording, and the value that it stands for."""


@dataclass(frozen=True)
class Operation:
    """An op on some of the values so far, counted from the end."""

    name: str
    first: int
    second: int
    kind: str


OPERATIONS = st.builds(
    Operation,
    st.sampled_from(["linear", "linear", "norm", "add", "add", "silu", "gelu"]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from(["F32", "BF16", "Q8_0"]),
)
STEPS = st.lists(OPERATIONS, min_size=1, max_size=12)


def record(ops: NativeOps, x: Pair, operations: list[Operation]) -> Pair:
    """The last value, and its norm so that the step ends in something readable."""
    values = [x]
    for number, operation in enumerate(operations):
        first, second = (
            values[-1 - min(place, len(values) - 1)]
            for place in (operation.first, operation.second)
        )
        values += RECORDERS[operation.name](ops, first, second, operation.kind, number)
    return norm(ops, values[-1])


def norm(ops: NativeOps, x: Pair) -> Pair:
    return ops.rms_norm(x[0], GAIN, EPS), normalised(x[1])


def normalised(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * GAIN.double()


def record_norm(ops: NativeOps, x: Pair, y: Pair, kind: str, seed: int) -> list[Pair]:
    return [norm(ops, x)]


def record_linear(ops: NativeOps, x: Pair, y: Pair, kind: str, seed: int) -> list[Pair]:
    return [mapped(ops, x, make_weight(kind, WIDTH, WIDTH, seed=seed))]


def mapped(ops: NativeOps, x: Pair, weight: Weight) -> Pair:
    linear = ops.prepare_linear([weight.stored])
    return ops.linear(x[0], linear), x[1] @ weight.values.T


def record_add(ops: NativeOps, x: Pair, y: Pair, kind: str, seed: int) -> list[Pair]:
    normed, total = ops.add_rms_norm(x[0], y[0], GAIN, EPS)
    return [(total, x[1] + y[1]), (normed, normalised(x[1] + y[1]))]


def recorder_of_gate(
    name: str, function: Callable[[Tensor], Tensor]
) -> Callable[[NativeOps, Pair, Pair, str, int], list[Pair]]:
    def record_gate(ops: NativeOps, x: Pair, y: Pair, kind: str, seed: int) -> list[Pair]:
        both, product = mapped(ops, norm(ops, x), make_weight(kind, 2 * WIDTH, WIDTH, seed=seed))
        first, second = product.chunk(2, dim=1)
        return [(getattr(ops, name)(both), function(first) * second)]

    return record_gate


RECORDERS = {
    "norm": record_norm,
    "linear": record_linear,
    "add": record_add,
    "silu": recorder_of_gate("silu_mul", torch.nn.functional.silu),
    "gelu": recorder_of_gate("gelu_mul", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
}


def inputs(rows: int) -> Tensor:
    return normal(rows, WIDTH, seed=1)
