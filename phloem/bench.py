"""Measure an engine from its client's side: throughput, time to first token, cache hits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from phloem.runtime.client import Client
    from phloem.runtime.protocol import GenerateRequest


@dataclass(frozen=True, slots=True)
class Timing:
    """One request: seconds from the common start to its first token and to its end."""

    first_token: float
    end: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Report:
    """A run of requests that were submitted together. Times are in seconds, rates per second.

    ``prefill_rate`` counts all prompt tokens, cached or not, up to the last first token;
    ``output_rate`` all generated tokens over the whole run.
    """

    requests: int
    wall: float
    prefill_rate: float
    output_rate: float
    ttft_p50: float
    ttft_p99: float
    hit_rate: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def prompts(count: int, shared: int, own: int, vocab_size: int, seed: int = 0) -> list[list[int]]:
    """``count`` prompts of random tokens: ``shared`` leading ones in common, ``own`` each."""
    rng = np.random.default_rng(seed)
    prefix = rng.integers(20, vocab_size, shared).tolist()
    return [prefix + rng.integers(20, vocab_size, own).tolist() for _ in range(count)]


async def measure(client: Client, requests: Sequence[GenerateRequest]) -> Report:
    """Submit all requests at once and wait for all."""
    start = time.perf_counter()
    timings = await asyncio.gather(*(timed(client, request, start) for request in requests))
    return report(timings)


async def timed(client: Client, request: GenerateRequest, start: float) -> Timing:
    first = 0.0
    async for delta in client.generate(request):
        if delta.finish is not None and delta.finish.error is not None:
            raise RuntimeError(delta.finish.error.message)
        if not first and delta.token_ids:
            first = time.perf_counter() - start
    end = time.perf_counter() - start
    return Timing(first, end, delta.prompt_tokens, delta.cached_tokens, delta.completion_tokens)


def report(timings: Sequence[Timing]) -> Report:
    first = np.array([timing.first_token for timing in timings])
    wall = max(timing.end for timing in timings)
    prompt_tokens = sum(timing.prompt_tokens for timing in timings)
    return Report(
        requests=len(timings),
        wall=wall,
        prefill_rate=prompt_tokens / float(first.max()),
        output_rate=sum(timing.output_tokens for timing in timings) / wall,
        ttft_p50=float(np.percentile(first, 50)),
        ttft_p99=float(np.percentile(first, 99)),
        hit_rate=sum(timing.cached_tokens for timing in timings) / prompt_tokens,
    )
