"""Attention spelled out in float64, and pages poisoned with nan wherever no token is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from paging import deal_pages, ragged_batch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer


@dataclass(frozen=True)
class Case:
    """A ragged batch, its queries, its pages, and each request's keys and values in a row."""

    batch: RaggedBatch
    q: Tensor
    kv: KVLayer
    keys: list[Tensor]
    values: list[Tensor]


def make_case(
    spans: Sequence[tuple[int, int]],
    *,
    heads: int,
    kv_heads: int,
    size: int,
    page_size: int = 16,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Case:
    """Random requests with (queries, kv_len); what belongs to no token is nan."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    tables = deal_pages([kv_len for _, kv_len in spans], page_size, seed)
    pages = sum(map(len, tables)) + 1
    kv = tuple(
        torch.full((pages, page_size, kv_heads, size), torch.nan, dtype=dtype) for _ in range(2)
    )
    rows = [[normal(kv_len, kv_heads, size) for _, kv_len in spans] for _ in range(2)]
    for pool, requests in zip(kv, rows, strict=True):
        for table, tokens in zip(tables, requests, strict=True):
            slots = (torch.tensor(table)[:, None] * page_size + torch.arange(page_size)).flatten()
            pool.view(-1, kv_heads, size)[slots[: len(tokens)]] = tokens
    q = normal(sum(queries for queries, _ in spans), heads, size)
    return Case(ragged_batch(spans, tables, page_size), q, (kv[0], kv[1]), rows[0], rows[1])


def expected(case: Case, scale: float, window: int | None, softcap: float | None) -> Tensor:
    """float64 [T, H, D], one query and one head after the other."""
    out = torch.empty(case.q.shape, dtype=torch.float64)
    shared = case.q.shape[1] // case.keys[0].shape[1]
    starts = case.batch.query_start.tolist()
    for row, position in enumerate(case.batch.positions.tolist()):
        request = next(r for r in range(len(starts)) if row < starts[r + 1])
        first = 0 if window is None else max(0, position - window + 1)
        for head in range(case.q.shape[1]):
            keys = case.keys[request][first : position + 1, head // shared].double()
            values = case.values[request][first : position + 1, head // shared].double()
            scores = keys @ case.q[row, head].double() * scale
            if softcap is not None:
                scores = softcap * torch.tanh(scores / softcap)
            out[row, head] = torch.softmax(scores, dim=0) @ values
    return out
