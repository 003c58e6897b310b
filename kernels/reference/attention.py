"""Attention over paged keys and values, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from phloem.kernels.ops import KVLayer
from phloem.kernels.reference.scratch import Scratch
from phloem.kernels.reference.tiles import Tile

ROWS = 4
"""Rows of a product are a multiple of this: for a rest of fewer rows MKL has other kernels, with
other roundings."""


def attention(
    q: Tensor,
    kv: KVLayer,
    tiles: Sequence[Tile],
    scale: float,
    softcap: float | None,
    scratch: Scratch,
) -> Tensor:
    """[T, H, D] -> [T, H, D], in float32 inside.

    Raises:
        ValueError: H is no multiple of the number of KV heads.
    """
    if q.shape[1] % kv[0].shape[2]:
        raise ValueError(f"{q.shape[1]} query heads cannot share {kv[0].shape[2]} KV heads")
    out = torch.empty_like(q)
    for tile in tiles:
        k, v = (_gather(pages, tile, name, scratch) for pages, name in zip(kv, "kv", strict=True))
        for value, keys in zip(v, tile.keys, strict=True):
            value[keys:] = 0  # whatever lies there may be no number, and 0 * nan is nan
        queries = q.index_select(0, tile.rows).float().mul_(scale)
        result = _attend(queries, k, v, tile, softcap, scratch)
        out.index_copy_(0, tile.rows, result.to(q.dtype))
    return out


def _gather(pages: Tensor, tile: Tile, name: str, scratch: Scratch) -> Tensor:
    """The tile's key slots, float32 [B, L, K, D]."""
    shape = (len(tile.pages), *pages.shape[1:])
    slots = scratch.take(name, shape, pages.dtype, pages.device)
    torch.index_select(pages, 0, tile.pages, out=slots)
    if pages.dtype != torch.float32:
        slots = scratch.take(name, shape, torch.float32, pages.device).copy_(slots)
    return slots.view(len(tile.keys), -1, *pages.shape[2:])


def _attend(
    q: Tensor, k: Tensor, v: Tensor, tile: Tile, softcap: float | None, scratch: Scratch
) -> Tensor:
    """q [B * n, H, D]; k, v [B, L, K, D] -> [B * n, H, D]."""
    spans, slots, kv_heads, size = k.shape
    queries = tile.hidden.shape[1]
    group = q.shape[1] // kv_heads
    used = queries * group
    rows = q.new_zeros(kv_heads, spans, -(-used // ROWS) * ROWS, size)
    split = (kv_heads, spans, queries, group, -1)
    rows[:, :, :used].view(split).copy_(
        q.view(spans, queries, kv_heads, group, size).permute(2, 0, 1, 3, 4)
    )
    scores = scratch.take("scores", (*rows.shape[:3], slots), q.dtype, q.device)
    _products(rows, k.permute(2, 0, 3, 1), scores)
    if softcap is not None:
        scores.div_(softcap).tanh_().mul_(softcap)
    clear = slots - tile.hidden.shape[2]
    unclear = scores[:, :, :used, clear:].view(kv_heads, spans, queries, group, slots - clear)
    unclear.masked_fill_(tile.hidden[:, :, None], -torch.inf)
    torch.softmax(scores, -1, out=scores)
    _products(scores, v.permute(2, 0, 1, 3), rows)
    return rows[:, :, :used].view(split).permute(1, 2, 0, 3, 4).reshape(q.shape)


def _products(a: Tensor, b: Tensor, out: Tensor) -> None:
    """out = a [K, B, R, X] @ b [K, B, X, Y], without the copies matmul makes of a strided b."""
    if a.shape[1] == 1:
        torch.bmm(a[:, 0], b[:, 0], out=out[:, 0])
        return
    for head in range(len(a)):
        torch.bmm(a[head], b[head], out=out[head])
