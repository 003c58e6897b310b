"""Requests whose queries, keys and values are rows of one table, computed step by step over pages.

The pages are full of bytes 0xFF at first, which are nan as floats: what lies beyond a request's
keys must never reach a result.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from native_runner import Recorded, normal
from paging import deal_pages, ragged_batch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.native.backend import NativeOps
from phloem.kernels.ops import KVLayer

Spans = list[tuple[int, int]]
"""(request, its next so many tokens)"""
SPANS = 1, 1, 2, 3, 7, 8, 33, 64, 200
CHUNK = 128
"""Keys that are weighted together."""


@dataclass(frozen=True)
class Shape:
    """Of an attention layer."""

    heads: int = 4
    kv_heads: int = 2
    size: int = 16
    page_size: int = 16
    rotated: int = 16
    window: int | None = None
    softcap: float | None = None

    @property
    def scale(self) -> float:
        return self.size**-0.5

    @property
    def widths(self) -> list[int]:
        """Columns of queries, keys and values."""
        return [heads * self.size for heads in (self.heads, self.kv_heads, self.kv_heads)]


def schedule(lengths: Sequence[int], seed: int) -> list[Spans]:
    """Some division into steps: prefills, chunks of them and single tokens side by side."""
    choose = random.Random(seed)
    left, steps = dict(enumerate(lengths)), list[Spans]()
    while left:
        chosen = sorted(choose.sample(sorted(left), choose.randint(1, len(left))))
        spans = [(request, min(left[request], choose.choice(SPANS))) for request in chosen]
        steps.append(spans)
        for request, count in spans:
            left[request] -= count
        left = {request: count for request, count in left.items() if count}
    return steps


def one_by_one(lengths: Sequence[int]) -> list[Spans]:
    """Each request alone, at once."""
    return [[(request, length)] for request, length in enumerate(lengths)]


@dataclass(frozen=True)
class Part:
    """A step: rows of the table, and where they sit."""

    rows: Tensor
    batch: RaggedBatch


def lay_out(lengths: Sequence[int], steps: Sequence[Spans], page_size: int) -> list[Part]:
    tables = deal_pages(lengths, page_size, seed=len(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    done = [0] * len(lengths)
    parts = []
    for spans in steps:
        rows = [torch.arange(starts[r] + done[r], starts[r] + done[r] + n) for r, n in spans]
        for request, count in spans:
            done[request] += count
        batch = ragged_batch(
            [(count, done[request]) for request, count in spans],
            [tables[request] for request, _ in spans],
            page_size,
        )
        parts.append(Part(torch.cat(rows), batch))
    return parts


def poisoned_pages(
    ops: NativeOps, shape: Shape, dtype: torch.dtype, lengths: Sequence[int]
) -> KVLayer:
    pages = sum(-(-length // shape.page_size) for length in lengths) + 1
    sides = ops.page_sides(shape.page_size, shape.kv_heads, shape.size, dtype)
    layer = tuple(torch.empty(pages, *side.shape, dtype=side.dtype) for side in sides)
    for side in layer:
        side.view(torch.uint8).fill_(0xFF)
    return layer


def rope_table(positions: int, rotated: int, *, quarters: bool = False) -> Tensor:
    """Any angles; or multiples of 90 degrees, which leave every float as it is."""
    angles = normal(positions, rotated // 2, seed=9) * 3
    if not quarters:
        return torch.stack([angles.cos(), angles.sin()], dim=1)
    turns = (angles.abs() * 100).long() % 4
    cos = torch.tensor([1.0, 0.0, -1.0, 0.0])
    return torch.stack([cos[turns], cos[(turns + 3) % 4]], dim=1)


def attend(
    ops: NativeOps,
    shape: Shape,
    dtype: torch.dtype,
    x: Tensor,
    lengths: Sequence[int],
    steps: Sequence[Spans],
    table: Tensor,
) -> Tensor:
    """Rotate, cache, attend: the rows of all requests, [sum of lengths, H * D]."""
    kv = [poisoned_pages(ops, shape, dtype, lengths)]

    def body(values: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        q, k, v = (part.unflatten(1, (-1, shape.size)) for part in values.split(shape.widths, 1))
        rotated = ops.rope_and_cache(q, k, v, table, kv[0], batch)
        return ops.attention(
            rotated, kv[0], batch, scale=shape.scale, window=shape.window, softcap=shape.softcap
        )

    program = Recorded(ops, x, body, kv)
    out = torch.full((len(x), shape.widths[0]), torch.nan)
    for part in lay_out(lengths, steps, shape.page_size):
        out[part.rows] = program.run(part.rows, part.batch)
    return out


# What the values should be, in float64


def rotate(heads: Tensor, table: Tensor) -> Tensor:
    """Rotate heads [T, H, D] by the first T positions of the table, as complex numbers."""
    cos, sin = table[: len(heads), :, None].double().unbind(1)
    half = cos.shape[-1]
    first, second, rest = heads.double().split((half, half, heads.shape[-1] - 2 * half), dim=-1)
    turned = torch.complex(first, second) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag, rest], dim=-1)


def kept(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Keys or values [T, K, D] after the cache, which keeps them in ``dtype``."""
    if dtype == torch.float32:
        return x
    if dtype == torch.bfloat16:
        return x.float().bfloat16().double()
    floats = x.float().numpy()
    scale = np.abs(floats).max(axis=-1, keepdims=True) / np.float32(127)
    codes = np.rint(floats * (np.float32(1) / scale))
    return torch.from_numpy(codes.astype(np.float64) * scale.astype(np.float64))


def expected(
    shape: Shape, dtype: torch.dtype, x: Tensor, lengths: Sequence[int], table: Tensor
) -> Tensor:
    """float64 [sum of lengths, H * D]."""
    requests = x.split(list(lengths))
    return torch.cat([expected_of_one(shape, dtype, each, table) for each in requests])


@dataclass(frozen=True)
class Case:
    """Rows of some requests, their rope table, and what attention over them gives."""

    x: Tensor
    table: Tensor
    expected: Tensor


@cache
def make_case(shape: Shape, dtype: torch.dtype, lengths: tuple[int, ...]) -> Case:
    """The same one for all instruction sets."""
    x = normal(sum(lengths), sum(shape.widths))
    # Turns that leave floats as they are: the oracle then rounds the same numbers as the cache.
    table = rope_table(max(lengths), shape.rotated, quarters=dtype != torch.float32)
    return Case(x, table, expected(shape, dtype, x, lengths, table))


def weights_of(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Softmax over the keys; what multiplies bfloat16 values is rounded to it, chunk by chunk."""
    if dtype != torch.bfloat16:
        return torch.softmax(scores, dim=-1)
    keys = scores.shape[-1]
    padded = torch.nn.functional.pad(scores, (0, -keys % CHUNK), value=-torch.inf)
    chunks = padded.unflatten(-1, (-1, CHUNK))
    highest = chunks.amax(dim=-1, keepdim=True)
    within = torch.where(chunks == -torch.inf, 0.0, (chunks - highest).exp())
    shares = (highest - highest.amax(dim=-2, keepdim=True)).exp()
    total = (within * shares).sum(dim=(-1, -2), keepdim=True)
    rounded = within.float().bfloat16().double() * shares / total
    return rounded.flatten(-2)[..., :keys]


def expected_of_one(shape: Shape, dtype: torch.dtype, x: Tensor, table: Tensor) -> Tensor:
    q, k, v = (part.unflatten(1, (-1, shape.size)) for part in x.split(shape.widths, 1))
    queries = rotate(q, table) * shape.scale
    if dtype == torch.bfloat16:  # queries are rounded too, to multiply pairs
        queries = (rotate(q, table).float() * shape.scale).bfloat16().double()
    group = shape.heads // shape.kv_heads
    keys = kept(rotate(k, table), dtype).repeat_interleave(group, dim=1)
    values = kept(v.double(), dtype).repeat_interleave(group, dim=1)
    scores = torch.einsum("qhd,khd->hqk", queries, keys)
    if shape.softcap is not None:
        scores = shape.softcap * torch.tanh(scores / shape.softcap)
    distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
    hidden = distance < 0 if shape.window is None else (distance < 0) | (distance >= shape.window)
    weights = weights_of(scores.masked_fill(hidden, -torch.inf), dtype)
    return torch.einsum("hqk,khd->qhd", weights, values).flatten(1)
