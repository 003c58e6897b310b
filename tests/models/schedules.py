"""Divide the computing of some requests into steps, in any way, and check what comes out."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from paged_runner import PagedRunner, Request
from tiny_checkpoints import Checkpoint

from phloem.runtime.models import Model

LONGEST = 45
TOKENS = st.integers(0, 96)


def run_random_schedule(model: Model, data: st.DataObject, shortest: int = 1) -> list[Request]:
    """Requests of all lengths, some on the pages of another's prefix, in random spans."""
    runner = PagedRunner(model)
    first = runner.add(data.draw(st.lists(TOKENS, min_size=shortest, max_size=LONGEST)))
    runner.finish(first, data.draw(st.integers(1, LONGEST)))
    requests: list[Request] = []
    for _ in range(data.draw(st.integers(1, 3))):
        shared = data.draw(st.integers(0, len(first.tokens) // runner.page_size))
        head = first.tokens[: shared * runner.page_size]
        least = max(shortest - len(head), 1)
        most = max(least, LONGEST - len(head))
        tail = data.draw(st.lists(TOKENS, min_size=least, max_size=most))
        requests.append(runner.add(head + tail, first, shared))
    while waiting := [r for r in requests if r.computed < len(r.tokens)]:
        counts = [min(data.draw(st.integers(0, 20)), len(r.tokens) - r.computed) for r in waiting]
        spans = [(r, count) for r, count in zip(waiting, counts, strict=True) if count]
        runner.step(spans or [(waiting[0], 1)])
    return [first, *requests]


def assert_logits(request: Request, checkpoint: Checkpoint, tolerance: float = 1e-4) -> None:
    """What was computed of the request are the logits of transformers' own model."""
    logits = torch.cat(request.logits)
    exact = checkpoint.logits(request.tokens)[-len(logits) :]
    error = (logits - exact).abs().max() / exact.abs().max()
    assert error < tolerance, f"logits are off by {error:.2g} of their size"
