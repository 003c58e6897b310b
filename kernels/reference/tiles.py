"""Cutting a ragged batch into dense tiles, one matrix product each.

A request's queries are cut into spans; spans with equally many queries and equally many key slots
share a tile, so that the decode rows of a batch become a few batched products. Which tile a query
falls in depends on its neighbours, so tiles are shaped for results that do not: see ``ALIGN``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch

ALIGN = 384
"""Key slots start at a multiple of this and are at least as many. MKL sums a product over keys in
blocks of this size: with it, a query's result keeps its bits whatever else its tile holds."""
STEP = 128
"""Key slots are a multiple of this, so that requests of similar length share tiles."""
QUERIES = 128
"""Queries of a tile at most."""
SCORES = 1 << 24
"""Scores (heads x queries x key slots) of a tile at most, unless one query alone has more."""
SLOTS = 1 << 13
"""Key slots gathered for a tile at most, unless one request alone has more."""


@dataclass(frozen=True, slots=True)
class Tile:
    """B spans of n queries, each with L key slots.

    Attributes:
        rows: int64 [B * n], the queries' rows in the batch.
        pages: int64 [B * L / page_size]; what lies beyond a request's end repeats its last page.
        keys: for each span, how many of its key slots hold keys.
        hidden: bool [B, n, at most L], True where a query does not see one of the last slots; all
            slots before them are seen by all.
    """

    rows: Tensor
    pages: Tensor
    keys: list[int]
    hidden: Tensor


@dataclass(frozen=True, slots=True)
class _Span:
    """Queries at positions [first, end) of a request, beginning at ``row`` of the batch."""

    request: int
    row: int
    first: int
    end: int
    start: int
    """Position of the first key slot."""


def plan_tiles(batch: RaggedBatch, heads: int, window: int | None) -> list[Tile]:
    """Tiles that cover every query of ``batch`` once."""
    step = math.lcm(STEP, batch.page_size)
    groups: defaultdict[tuple[int, int], list[_Span]] = defaultdict(list)
    for span in _spans(batch, heads, window):
        slots = max(span.end - span.start, ALIGN)
        groups[span.end - span.first, -(-slots // step) * step].append(span)
    tiles = []
    for (queries, slots), spans in groups.items():
        size = max(1, min(SLOTS // slots, QUERIES // queries))
        parts = (spans[i : i + size] for i in range(0, len(spans), size))
        tiles += [_tile(batch, part, slots, window) for part in parts]
    return tiles


def _spans(batch: RaggedBatch, heads: int, window: int | None) -> Iterator[_Span]:
    align = math.lcm(ALIGN, batch.page_size)
    starts = batch.query_start.tolist()
    for request, kv_len in enumerate(batch.kv_len.tolist()):
        row, stop = starts[request : request + 2]
        most = max(1, min(QUERIES, SCORES // (heads * max(kv_len, 1))))
        first = kv_len - (stop - row)
        for i in range(0, stop - row, most):
            end = min(first + i + most, kv_len)
            seen = 0 if window is None else max(0, first + i - window + 1)
            yield _Span(request, row + i, first + i, end, seen // align * align)


def _tile(batch: RaggedBatch, spans: list[_Span], slots: int, window: int | None) -> Tile:
    device = batch.page_table.device
    request, row, first, end, start = torch.tensor(
        [(s.request, s.row, s.first, s.end, s.start) for s in spans], device=device
    )[:, :, None].unbind(1)
    queries = torch.arange(spans[0].end - spans[0].first, device=device)
    page = start // batch.page_size + torch.arange(slots // batch.page_size, device=device)
    page = torch.minimum(page, (end - 1) // batch.page_size)
    clear = 0 if window is not None else min(s.first - s.start for s in spans)
    position = (first + queries)[:, :, None]
    key = (start + torch.arange(clear, slots, device=device))[:, None]
    hidden = key > position
    if window is not None:
        hidden |= key <= position - window
    return Tile(
        rows=(row + queries).flatten(),
        pages=batch.page_table[request, page].flatten().long(),
        keys=[s.end - s.start for s in spans],
        hidden=hidden,
    )
