"""Requests laid out over pages, as the engine would."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from phloem.kernels.batch import RaggedBatch


def deal_pages(kv_lens: Sequence[int], page_size: int, seed: int) -> list[list[int]]:
    """Pages for each request, in no order; page 0 belongs to none."""
    counts = [-(-length // page_size) for length in kv_lens]
    pages = list(range(1, sum(counts) + 1))
    random.Random(seed).shuffle(pages)
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return [pages[end - count : end] for count, end in zip(counts, ends, strict=True)]


def ragged_batch(
    spans: Sequence[tuple[int, int]], tables: Sequence[Sequence[int]], page_size: int
) -> RaggedBatch:
    """A batch of requests with (queries, kv_len) on the pages of ``tables``; page 0 pads them."""
    width = max(len(table) for table in tables)
    page_table = torch.zeros(len(tables), width + 1, dtype=torch.int32)
    positions, slots = [], []
    for row, ((queries, kv_len), table) in enumerate(zip(spans, tables, strict=True)):
        page_table[row, : len(table)] = torch.tensor(table)
        for position in range(kv_len - queries, kv_len):
            positions.append(position)
            slots.append(table[position // page_size] * page_size + position % page_size)
    starts = [sum(queries for queries, _ in spans[:i]) for i in range(len(spans) + 1)]
    return RaggedBatch(
        positions=torch.tensor(positions),
        slots=torch.tensor(slots),
        query_start=torch.tensor(starts, dtype=torch.int32),
        kv_len=torch.tensor([kv_len for _, kv_len in spans], dtype=torch.int32),
        page_table=page_table,
        page_size=page_size,
    )
