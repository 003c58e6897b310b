"""A model of two layers with every op in it, over poisoned pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from native_runner import native_ops, normal
from paged_requests import Shape, Spans, lay_out, poisoned_pages, rope_table
from stored_weights import make_weight
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.native.backend import NativeOps
from phloem.kernels.ops import KVLayer, Linear

HIDDEN, INNER, VOCABULARY, LAYERS = 64, 96, 50, 2
LONGEST = 400
MOST = [LONGEST] * 4
"""Requests that there are pages for."""
SHAPE = Shape(heads=6, kv_heads=2, size=16, page_size=8, window=150)
MODES = {
    "float32": ("F32", True),
    "bfloat16": ("BF16", True),
    "quantised": ("Q4_1", True),
    "int8": ("Q4_1", False),
}
"""Type of the weights, and whether activations stay exact."""


@dataclass(frozen=True)
class Layer:
    qkv: Linear
    o: Linear
    gate_up: Linear
    down: Linear


class Toy:
    """The model, recorded for some number of threads."""

    def __init__(self, kernels: str, dtype: torch.dtype, mode: str, threads: int) -> None:
        kind, exact = MODES[mode]
        self.ops = native_ops(kernels, exact=exact, threads=threads)
        self._layers = list(make_layers(self.ops, kind))
        self._embedding = self.ops.prepare_embedding(make_weight(kind, VOCABULARY, HIDDEN).stored)
        self._norm = 1 + normal(HIDDEN, seed=5) / 10
        self._rope = rope_table(LONGEST, SHAPE.rotated)
        self._kv = [poisoned_pages(self.ops, SHAPE, dtype, MOST) for _ in range(LAYERS)]
        self._run = self.ops.compile(self._step, self._kv)

    def logits(self, lengths: Sequence[int], steps: Sequence[Spans]) -> Tensor:
        """Of every token of requests that are computed in these steps."""
        for side in (side for layer in self._kv for side in layer):
            side.view(torch.uint8).fill_(0xFF)
        token_ids = torch.arange(sum(lengths)) * 7 % VOCABULARY
        out = torch.full((sum(lengths), VOCABULARY), torch.nan)
        for part in lay_out(lengths, steps, SHAPE.page_size):
            rows = torch.arange(len(part.rows))
            out[part.rows] = self._run(token_ids[part.rows], part.batch, rows)
        return out

    def _step(
        self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer], rows: Tensor
    ) -> Tensor:
        ops = self.ops
        x = ops.embedding(token_ids, self._embedding)
        normed = ops.rms_norm(x, self._norm, 1e-5)
        for index, layer in enumerate(self._layers):
            qkv = ops.linear(normed, layer.qkv).split(SHAPE.widths, dim=1)
            q, k, v = (part.unflatten(1, (-1, SHAPE.size)) for part in qkv)
            q = ops.rope_and_cache(q, k, v, self._rope, kv[index], batch)
            window = SHAPE.window if index else None
            mixed = ops.attention(q, kv[index], batch, scale=SHAPE.scale, window=window)
            mixed = ops.linear(mixed.flatten(1), layer.o)
            normed, x = ops.add_rms_norm(mixed, x, self._norm, 1e-5)
            inner = ops.silu_mul(ops.linear(normed, layer.gate_up))
            normed, x = ops.add_rms_norm(ops.linear(inner, layer.down), x, self._norm, 1e-5)
        return ops.logits(normed, rows, ops.tied_linear(self._embedding), softcap=30.0)


def make_layers(ops: NativeOps, kind: str) -> Iterator[Layer]:
    shapes = (
        (sum(SHAPE.widths), HIDDEN),
        (HIDDEN, SHAPE.widths[0]),
        (2 * INNER, HIDDEN),
        (HIDDEN, INNER),
    )
    for layer in range(LAYERS):
        weights = (make_weight(kind, *shape, seed=10 * layer + i) for i, shape in enumerate(shapes))
        yield Layer(*(ops.prepare_linear([weight.stored]) for weight in weights))


@cache
def toy(kernels: str, dtype: torch.dtype, mode: str, threads: int) -> Toy:
    return Toy(kernels, dtype, mode, threads)
