"""Run a model over pages span by span, as the engine does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from paging import ragged_batch
from torch import Tensor

from phloem.runtime.models import Model


@dataclass
class Request:
    """Tokens with their pages; ``computed`` of them have their K and V there."""

    tokens: list[int]
    pages: list[int]
    computed: int = 0
    logits: list[Tensor] = field(default_factory=list)


class PagedRunner:
    """A pool whose every slot is nan until a token is written to it."""

    def __init__(self, model: Model, page_size: int = 4, num_pages: int = 200) -> None:
        self.model = model
        self.page_size = page_size
        geometry = model.kv_geometry
        shape = (num_pages, page_size, geometry.num_kv_heads, geometry.head_dim)
        self.kv = [
            (
                torch.full(shape, torch.nan, dtype=model.dtype),
                torch.full(shape, torch.nan, dtype=model.dtype),
            )
            for _ in range(geometry.num_layers)
        ]
        self._free = torch.randperm(num_pages - 1, generator=torch.Generator().manual_seed(0)) + 1
        self._used = 0

    def add(self, tokens: Sequence[int], prefix: Request | None = None, shared: int = 0) -> Request:
        """A request whose first ``shared`` pages are those of another, already computed."""
        count = -(-len(tokens) // self.page_size) - shared
        fresh = self._free[self._used : self._used + count].tolist()
        self._used += count
        pages = prefix.pages[:shared] if prefix else []
        return Request(list(tokens), pages + fresh, computed=shared * self.page_size)

    @torch.inference_mode()
    def step(self, spans: Sequence[tuple[Request, int]]) -> None:
        """Compute the next n tokens of each request, all in one batch, and their logits."""
        batch = ragged_batch(
            [(count, request.computed + count) for request, count in spans],
            [request.pages for request, _ in spans],
            self.page_size,
        )
        tokens = [
            token
            for request, count in spans
            for token in request.tokens[request.computed : request.computed + count]
        ]
        rows = torch.arange(len(tokens))
        logits = self.model.logits(torch.tensor(tokens), batch, self.kv, rows)
        for (request, count), rows in zip(
            spans, logits.split([count for _, count in spans]), strict=True
        ):
            request.logits.append(rows)
            request.computed += count

    def finish(self, request: Request, chunk: int) -> Tensor:
        """Compute the rest of one request, ``chunk`` tokens a step; all its logits."""
        while request.computed < len(request.tokens):
            self.step([(request, min(chunk, len(request.tokens) - request.computed))])
        return torch.cat(request.logits)
