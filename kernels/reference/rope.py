"""Rotary position embedding (Su et al., 2021) and the write into the paged cache."""

from __future__ import annotations

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer


def rope_and_cache(
    q: Tensor, k: Tensor, v: Tensor, rope: Tensor, kv: KVLayer, batch: RaggedBatch
) -> Tensor:
    """Rotate q and k by position, store k and v in their slots; returns rotated q."""
    cos, sin = rope.index_select(0, batch.positions).unsqueeze(2).unbind(1)
    store(rotate(k, cos, sin), v, kv, batch.slots)
    return rotate(q, cos, sin)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + r / 2) of x [T, heads, D]; cos and sin are [T, 1, r / 2]."""
    half = cos.shape[-1]
    wide = x.float()
    first, second, rest = wide.tensor_split((half, 2 * half), dim=-1)
    parts = [
        torch.addcmul(first * cos, second, sin, value=-1),
        torch.addcmul(second * cos, first, sin),
        rest,
    ]
    return torch.cat(parts, dim=-1).to(x.dtype)


def store(k: Tensor, v: Tensor, kv: KVLayer, slots: Tensor) -> None:
    """Write k and v [T, K, D] at ``slots`` of the layer's pages."""
    for pages, new in zip(kv, (k, v), strict=True):
        pages.view(-1, *pages.shape[2:]).index_copy_(0, slots, new.to(pages.dtype))
