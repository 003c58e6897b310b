"""Rotary embedding, the cache and attention together, over pages that hold nan beyond the keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from native_runner import EACH_KERNELS, Recorded, native_ops, normal
from paged_requests import (
    Shape,
    Spans,
    attend,
    expected,
    lay_out,
    make_case,
    one_by_one,
    poisoned_pages,
    rope_table,
    rotate,
    schedule,
)
from paging import ragged_batch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer

DTYPES = torch.float32, torch.bfloat16, torch.int8
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])
LENGTHS = 1, 17, 129, 270

SHAPES = {
    "smallest": Shape(heads=1, kv_heads=1, size=8, rotated=8, page_size=1),
    "page of 8": Shape(heads=3, kv_heads=1, size=16, page_size=8),
    "page of 16": Shape(heads=8, kv_heads=2, size=64, rotated=64),
    "page of 32": Shape(heads=9, kv_heads=3, size=80, rotated=32, page_size=32),
    "page of 64": Shape(heads=16, kv_heads=1, size=96, rotated=96, page_size=64),
    "group of 16, page of 1": Shape(heads=16, kv_heads=1, size=64, rotated=20, page_size=1),
    "head of 128": Shape(heads=4, kv_heads=1, size=128, rotated=128, page_size=32),
    "head of 256": Shape(heads=3, kv_heads=3, size=256, rotated=256, page_size=8),
    "head of 40": Shape(heads=2, kv_heads=2, size=40, rotated=10, page_size=8),
    "window of 1": Shape(window=1),
    "window of 7": Shape(heads=8, window=7, page_size=8),
    "window of 100": Shape(heads=8, window=100, page_size=64, softcap=3.0),
    "window of 128": Shape(heads=6, size=80, window=128, page_size=1),
    "window of 1000": Shape(window=1000),
    "softcap": Shape(size=96, softcap=1.5, page_size=32),
}
EACH_SHAPE = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def check(
    kernels: str, shape: Shape, dtype: torch.dtype, lengths: tuple[int, ...], steps: list[Spans]
) -> None:
    case = make_case(shape, dtype, lengths)
    actual = attend(native_ops(kernels), shape, dtype, case.x, lengths, steps, case.table)
    error = (actual.double() - case.expected).abs()
    if dtype == torch.bfloat16:
        # A weight next to a rounding's edge may fall to the other side.
        assert (error > 1e-5).double().mean() < 0.01
    assert error.max() < (0.005 if dtype == torch.bfloat16 else 1e-5)


@EACH_KERNELS
@EACH_DTYPE
@EACH_SHAPE
def test_any_schedule(kernels: str, dtype: torch.dtype, shape: Shape) -> None:
    for steps in one_by_one(LENGTHS), schedule(LENGTHS, 0), schedule(LENGTHS, 1):
        check(kernels, shape, dtype, LENGTHS, steps)


@EACH_KERNELS
@EACH_DTYPE
@pytest.mark.parametrize("heads, window", [(3, None), (3, 700), (16, None), (64, 300)])
def test_long_contexts(kernels: str, dtype: torch.dtype, heads: int, window: int | None) -> None:
    """Few rows over many keys, which are shared out among threads and merged."""
    shape = Shape(heads=heads, kv_heads=1, window=window)
    few: list[Spans] = [[(0, 1140)], [(0, 1)], [(0, 8), (1, 5)], [(0, 7)], [(0, 64)]]
    check(kernels, shape, dtype, (1220, 5), few)


@EACH_KERNELS
@EACH_DTYPE
@pytest.mark.parametrize("heads", [4, 16])
def test_rows_on_both_sides_of_a_chunk(kernels: str, dtype: torch.dtype, heads: int) -> None:
    """Request 0 leaves results of chunks that the rows of request 1 do not see."""
    shape = Shape(heads=heads, kv_heads=1)
    steps: list[Spans] = [[(0, 1300)], [(0, 8)], [(1, 1148)], [(1, 8)]]
    check(kernels, shape, dtype, (1308, 1156), steps)


@EACH_KERNELS
@EACH_DTYPE
def test_requests_may_share_pages(kernels: str, dtype: torch.dtype) -> None:
    """Two requests with a common head compute it once, and get what each alone would."""
    ops, shape = native_ops(kernels), Shape()
    x, table = normal(64, sum(shape.widths)), rope_table(64, shape.rotated)
    alone = attend(ops, shape, dtype, x, [64], [[(0, 64)]], table)
    kv = [poisoned_pages(ops, shape, dtype, [64, 64])]
    program = Recorded(ops, x, attention_body(ops, shape, table), kv)
    parts = lay_out([64, 64], [[(0, 32)], [(0, 32)]], shape.page_size)
    program.run(parts[0].rows, parts[0].batch)
    own = parts[1].batch
    pages = own.page_table[0, :4].tolist()
    other = [*pages[:2], *sorted(set(range(1, 9)) - set(pages))[:2]]
    offsets = torch.arange(32, 64)
    slots = torch.tensor(other)[offsets // 16] * 16 + offsets % 16
    both = RaggedBatch(
        positions=own.positions.repeat(2),
        slots=torch.cat([own.slots, slots]),
        query_start=torch.tensor([0, 32, 64], dtype=torch.int32),
        kv_len=torch.tensor([64, 64], dtype=torch.int32),
        page_table=torch.tensor([pages, other], dtype=torch.int32),
        page_size=16,
    )
    halves = program.run(torch.arange(32, 64).repeat(2), both).chunk(2)
    assert torch.equal(halves[0], alone[32:])
    assert torch.equal(halves[1], alone[32:])


@EACH_KERNELS
@EACH_DTYPE
@pytest.mark.parametrize("heads", [3, 8])
@pytest.mark.parametrize("threads", [1, 3])
def test_decoding_rows_go_through_a_long_common_head_together(
    kernels: str, dtype: torch.dtype, heads: int, threads: int
) -> None:
    """Requests whose common head is long, longer still for some, and a prefill beside them."""
    ops, shape = native_ops(kernels, threads=threads), Shape(heads=heads, kv_heads=1)
    length, page = 1400, shape.page_size
    x, table = normal(length, sum(shape.widths)), rope_table(length, shape.rotated)
    alone = attend(ops, shape, dtype, x, [length], [[(0, length)]], table)
    kv = [poisoned_pages(ops, shape, dtype, [length] * 4)]
    program = Recorded(ops, x, attention_body(ops, shape, table), kv)
    pages = iter(range(4 * -(-length // page)))
    first = [next(pages) for _ in range(-(-length // page))]
    heads_and_ends = [(70, 1125), (70, 1121), (66, 1060), (80, 1300), (80, 1290), (3, 200)]
    tables = [
        first[:head] + [next(pages) for _ in range(head, end // page + 1)]
        for head, end in heads_and_ends
    ]
    tails = [(head * page, end) for head, end in heads_and_ends]
    program.run(*spans_of([first], [(0, length)], page))
    program.run(*spans_of(tables, tails, page))
    last = [*((end, end + 1) for _, end in heads_and_ends), (700, 760)]
    rows, batch = spans_of([*tables, first], last, page)
    assert torch.equal(program.run(rows, batch), alone[rows])


def spans_of(
    tables: list[list[int]], spans: list[tuple[int, int]], page_size: int
) -> tuple[Tensor, RaggedBatch]:
    """Positions [first, last) of each request as rows, and where they sit."""
    batch = ragged_batch(
        [(last - first, last) for first, last in spans],
        [pages[: -(-last // page_size)] for pages, (_, last) in zip(tables, spans, strict=True)],
        page_size,
    )
    return torch.cat([torch.arange(*span) for span in spans]), batch


def attention_body(ops, shape: Shape, table: Tensor):  # type: ignore[no-untyped-def]
    def body(values: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        q, k, v = (part.unflatten(1, (-1, shape.size)) for part in values.split(shape.widths, 1))
        return ops.attention(
            ops.rope_and_cache(q, k, v, table, kv[0], batch), kv[0], batch, scale=shape.scale
        )

    return body


@EACH_KERNELS
@pytest.mark.parametrize("size, rotated", [(8, 8), (16, 10), (80, 32), (96, 96), (256, 2)])
def test_queries_are_rotated(kernels: str, size: int, rotated: int) -> None:
    ops = native_ops(kernels)
    shape = Shape(heads=3, kv_heads=1, size=size, rotated=rotated)
    x, table = normal(40, sum(shape.widths)), rope_table(40, rotated) * 1.5

    def body(values: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        q, k, v = (part.unflatten(1, (-1, size)) for part in values.split(shape.widths, 1))
        return ops.rope_and_cache(q, k, v, table, kv[0], batch)

    kv = [poisoned_pages(ops, shape, torch.float32, [40])]
    program = Recorded(ops, x, body, kv)
    (part,) = lay_out([40], [[(0, 40)]], shape.page_size)
    exact = rotate(x[:, : 3 * size].unflatten(1, (3, size)), table).flatten(1)
    torch.testing.assert_close(
        program.run(part.rows, part.batch).double(), exact, rtol=1e-6, atol=2e-6
    )


@EACH_KERNELS
@EACH_DTYPE
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("side", [1, 2], ids=["key", "value"])
def test_what_is_not_finite_shows_in_all_that_see_it(
    kernels: str, dtype: torch.dtype, side: int, value: float
) -> None:
    shape, lengths = Shape(heads=2, kv_heads=1), (300,)
    x = normal(300, sum(shape.widths))
    x.split(shape.widths, dim=1)[side][160, 3] = value
    table = rope_table(300, shape.rotated, quarters=True)
    ops = native_ops(kernels)
    # Computed whole, a row that does not see the place shares its pages with some that do.
    for spans in (one_by_one(lengths), [[(0, 300)]]):
        actual = attend(ops, shape, dtype, x, lengths, spans, table)
        assert not actual[160:].isfinite().all(dim=1).any()
        if spans == one_by_one(lengths):
            assert actual[:160].isfinite().all()


@EACH_KERNELS
@EACH_DTYPE
def test_large_and_absent_values(kernels: str, dtype: torch.dtype) -> None:
    """A head of zeros has no scale; scores of thousands leave one key alone."""
    shape, lengths = Shape(), (150,)
    x = normal(150, sum(shape.widths))
    x[:, : shape.widths[0]] *= 1000
    x[20:50, shape.widths[0] :] = 0
    table = rope_table(150, shape.rotated, quarters=True)
    actual = attend(native_ops(kernels), shape, dtype, x, lengths, one_by_one(lengths), table)
    assert actual.isfinite().all()
    if dtype != torch.int8:  # the oracle divides by the scale
        exact = expected(shape, dtype, x, lengths, table)
        torch.testing.assert_close(actual.double(), exact, rtol=1e-2, atol=1e-2)


@EACH_DTYPE
@pytest.mark.parametrize("page_size", [1, 8, 16, 32, 64])
@pytest.mark.parametrize("size", [8, 64, 80, 256])
def test_pages_have_room_for_what_is_written(dtype: torch.dtype, page_size: int, size: int) -> None:
    """Keys and values of padded heads, and two scales for each int8 token and head."""
    (side,) = native_ops("portable").page_sides(page_size, 3, size, dtype)
    assert side.shape[:2] == (page_size, 3)
    padded = -(-size // 16) * 16
    needed = 2 * padded * dtype.itemsize + (8 if dtype == torch.int8 else 0)
    assert side.shape[2] * dtype.itemsize >= needed


def test_what_there_are_no_pages_for() -> None:
    ops = native_ops("portable")
    with pytest.raises(ValueError, match=r"float16.*bfloat16, float32, int8"):
        ops.page_sides(16, 2, 64, torch.float16)
    with pytest.raises(ValueError, match="256 dimensions at most, not 257"):
        ops.page_sides(16, 2, 257, torch.float32)


@pytest.mark.parametrize("heads, kv_heads", [(3, 2), (65, 1)])
def test_query_heads_must_divide_among_kv_heads(heads: int, kv_heads: int) -> None:
    ops = native_ops("portable")
    shape = replace(Shape(), heads=heads, kv_heads=kv_heads)
    kv = [poisoned_pages(ops, shape, torch.float32, [1])]
    table = rope_table(1, shape.rotated)
    with pytest.raises(ValueError, match=f"{heads} query heads cannot share {kv_heads} KV heads"):
        Recorded(ops, normal(1, sum(shape.widths)), attention_body(ops, shape, table), kv)
