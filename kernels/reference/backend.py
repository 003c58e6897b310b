"""The reference ops as one object."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer, ModelStep, PageSide, Step
from phloem.kernels.reference import activation, mask, norm, rope, sampling
from phloem.kernels.reference import linear as linears
from phloem.kernels.reference.attention import attention
from phloem.kernels.reference.scratch import Scratch
from phloem.kernels.reference.tiles import Tile, plan_tiles


class ReferenceOps:
    """``kernels.ops.Ops`` in plain torch; for one thread at a time."""

    name = "reference"

    block_kinds: frozenset[str] = frozenset()

    prepare_linear = staticmethod(linears.prepare_linear)
    prepare_embedding = staticmethod(linears.prepare_embedding)
    tied_linear = staticmethod(linears.tied_linear)
    embedding = staticmethod(linears.embedding)
    linear = staticmethod(linears.linear)
    logits = staticmethod(linears.logits)
    rms_norm = staticmethod(norm.rms_norm)
    add_rms_norm = staticmethod(norm.add_rms_norm)
    rope_and_cache = staticmethod(rope.rope_and_cache)
    silu_mul = staticmethod(activation.silu_mul)
    gelu_mul = staticmethod(activation.gelu_mul)
    apply_mask = staticmethod(mask.apply_mask)
    sample = staticmethod(sampling.sample)

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._batch: RaggedBatch | None = None
        self._tiles: dict[tuple[int, int | None], list[Tile]] = {}

    def page_sides(
        self, page_size: int, heads: int, size: int, dtype: torch.dtype
    ) -> tuple[PageSide, ...]:
        """K and V, each [page_size, K, D], in a floating-point type."""
        if not dtype.is_floating_point:
            raise ValueError(f"kv_dtype: the reference ops have no {dtype}")
        return (PageSide((page_size, heads, size), dtype),) * 2

    def compile(self, step: ModelStep, kv: Sequence[KVLayer]) -> Step:
        """The step itself."""
        return lambda token_ids, batch, rows: step(token_ids, batch, kv, rows)

    def attention(
        self,
        q: Tensor,
        kv: KVLayer,
        batch: RaggedBatch,
        *,
        scale: float,
        window: int | None = None,
        softcap: float | None = None,
    ) -> Tensor:
        """See ``Ops.attention``."""
        tiles = self._plan(batch, q.shape[1], window)
        return attention(q, kv, tiles, scale, softcap, self._scratch)

    def _plan(self, batch: RaggedBatch, heads: int, window: int | None) -> list[Tile]:
        """The batch's tiles, planned for the first of its layers and kept for the others."""
        if batch is not self._batch:
            self._batch, self._tiles = batch, {}
        key = heads, window
        if key not in self._tiles:
            self._tiles[key] = plan_tiles(batch, heads, window)
        return self._tiles[key]
