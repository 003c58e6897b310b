"""Recording, fusing and laying out: any step computes what its ops say one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from native_runner import NO_ROWS, Recorded, compute, native_ops, normal, one_request
from random_steps import STEPS, Operation, inputs, record
from torch import Tensor

from phloem.kernels.native import tape
from phloem.kernels.native.layout import Buffers
from phloem.kernels.native.program import Program

ROWS = 3


@settings(max_examples=200, deadline=None)
@given(STEPS)
@example([Operation("linear", 0, 0, "BF16"), Operation("add", 0, 1, "F32")])
def test_any_step(operations: list[Operation]) -> None:
    """BF16 maps round what they read, so values may be off by that much."""
    ops, x = native_ops("portable", exact=True), inputs(ROWS)
    expected: list[Tensor] = []

    def body(values: Tensor) -> Tensor:
        out, exact = record(ops, (values, x.double()), operations)
        expected.append(exact)
        return out

    error = (compute(ops, x, body).double() - expected[0]).abs()
    rounds = any(operation.kind == "BF16" for operation in operations)
    assert error.max() < (0.5 if rounds else 1e-3)
    assert error.median() < (0.05 if rounds else 1e-4)


@settings(max_examples=200, deadline=None)
@given(STEPS)
@example([Operation("linear", 0, 0, "BF16"), Operation("add", 0, 1, "F32")])
def test_values_that_live_at_once_lie_in_different_buffers(operations: list[Operation]) -> None:
    for exact in (True, False):
        ops, x = native_ops("portable", exact=exact), inputs(ROWS)
        program = Recorded(
            ops,
            x,
            lambda values, *_: record(ops, (values, x.double()), operations)[0],  # noqa: B023
        )._program
        check_layout(program)


def check_layout(program: Program) -> None:
    """From a value's first instruction to its last, no other value is in its buffers."""
    touched: defaultdict[int, list[int]] = defaultdict(list)
    for index, instruction in enumerate(program._instructions):
        out = getattr(instruction, "out", None)
        for view in (*tape.reads(instruction), *([out] if out else [])):
            touched[view.value].append(index)
    owners: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for (value, _), buffer in program._buffers.at.items():
        owners[buffer].append((touched[value][0], touched[value][-1], value))
    for spans in owners.values():
        spans.sort()
        for (_, end, _), (start, _, _) in pairwise(spans):
            assert end < start


def test_buffers_are_used_again() -> None:
    """A chain of any length takes a fixed number of them."""
    ops = native_ops("portable")

    def chain(length: int) -> int:
        def body(values: Tensor, *_: object) -> Tensor:
            for _ in range(length):
                values = ops.rms_norm(values, torch.ones(64), 1e-5)
            return values

        return len(Recorded(ops, normal(2, 64), body)._program._buffers.rows)

    assert chain(3) == chain(30)


def test_a_buffer_has_one_width() -> None:
    buffers = Buffers()
    buffers.take(0, form=0, row=64)
    buffers.release(0, form=0)
    buffers.take(1, form=0, row=128)
    buffers.take(2, form=0, row=64)
    assert buffers.rows == [64, 128]
    assert buffers.at == {(0, 0): 0, (1, 0): 1, (2, 0): 0}


def test_ops_are_for_recording_alone() -> None:
    ops = native_ops("portable")
    with pytest.raises(RuntimeError, match="inside of compile"):
        ops.rms_norm(torch.zeros(1, 4), torch.ones(4), 1e-5)
    with pytest.raises(RuntimeError, match="inside of compile"):
        ops.embedding(torch.tensor([0]), ops.prepare_embedding(torch.zeros(2, 4)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x + 1,
        lambda x: torch.zeros(1, 8),
        lambda x: x[:, ::2],
        lambda x: x.view(1, 2, 4).transpose(1, 2),
        lambda x: x[:0],
        lambda x: x.expand(3, 8),
    ],
    ids=["computed", "foreign", "every other column", "transposed", "no rows", "more rows"],
)
def test_ops_read_values_of_ops_alone(spoil) -> None:  # type: ignore[no-untyped-def]
    ops = native_ops("portable")
    with pytest.raises(ValueError, match="values of recorded ops"):
        compute(ops, normal(2, 8), lambda x: ops.rms_norm(spoil(x), torch.ones(8), 1e-5))


def test_values_of_another_recording_are_foreign() -> None:
    ops, values = native_ops("portable"), list[Tensor]()
    compute(ops, normal(2, 8), lambda x: values.append(x) or x)
    with pytest.raises(ValueError, match="values of recorded ops"):
        compute(ops, normal(2, 8), lambda x: ops.rms_norm(values[0], torch.ones(8), 1e-5))


def test_a_step_that_fails_leaves_nothing_behind() -> None:
    ops, before = native_ops("portable"), len(native_ops("portable").programs)

    def fail(x: Tensor) -> Tensor:
        raise KeyError("head")

    with pytest.raises(KeyError, match="head"):
        compute(ops, normal(2, 8), fail)
    assert len(ops.programs) == before
    with pytest.raises(RuntimeError, match="inside of compile"):
        ops.silu_mul(torch.zeros(1, 8))
    assert torch.equal(compute(ops, normal(2, 8), lambda x: x), normal(2, 8))


def test_times_are_of_each_instruction() -> None:
    ops = native_ops("portable")
    head = ops.prepare_linear([normal(5, 8)])
    run = ops.compile(
        lambda ids, batch, kv, rows: ops.logits(
            ops.embedding(ids, ops.prepare_embedding(normal(4, 8))), rows, head
        ),
        [],
    )
    program = ops.programs.pop()
    program.profile(True)
    logits = run(torch.arange(4), one_request(4), torch.arange(4)).clone()
    times = program.times()
    assert [each.name for each in times] == ["embedding", "gather rows", "logits"]
    assert all(0 < each.seconds < 1 for each in times)
    program.profile(False)
    assert torch.equal(run(torch.arange(4), one_request(4), torch.arange(4)), logits)


def test_a_program_takes_more_and_fewer_rows() -> None:
    ops, x = native_ops("portable"), normal(500, 24)
    program = Recorded(ops, x, lambda v, *_: ops.rms_norm(v, torch.ones(24), 1e-5))
    whole = program.first(500)
    for rows in (1, 499, 2, 300):
        assert torch.equal(program.first(rows), whole[:rows])
    assert program.run(NO_ROWS, one_request(1)).shape == (0, 24)
