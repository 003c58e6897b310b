"""Phloem, from its client's side: scheduling, sampling and detokenising are in what is timed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from peers.peer import Output, Settings
from phloem.runtime.client import Client
from phloem.runtime.config import EngineConfig
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import GenerateRequest, SamplingParams

KV_TOKENS = 48 * 1024


class Phloem:
    def __init__(self, settings: Settings) -> None:
        options: dict[str, Any] = {"quantization": settings.variant} if settings.variant else {}
        self._client = local_client(
            EngineConfig(
                model=settings.gguf, threads=settings.threads, kv_tokens=KV_TOKENS, **options
            )
        )
        weights = settings.variant or "Q4_1"
        self.description = f"phloem {version('phloem')}, {weights}, {self._client.info.dtype}"

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        params = SamplingParams(max_new_tokens=length, temperature=0.0, ignore_eos=True)
        requests = [
            GenerateRequest(rid=uuid.uuid4().hex, input_ids=list(prompt), sampling=params)
            for prompt in prompts
        ]
        return asyncio.run(generate(self._client, requests))


async def generate(client: Client, requests: Sequence[GenerateRequest]) -> list[Output]:
    start = time.perf_counter()
    return await asyncio.gather(*(follow(client, request, start) for request in requests))


async def follow(client: Client, request: GenerateRequest, start: float) -> Output:
    output = Output([], [])
    async for delta in client.generate(request):
        if delta.finish is not None and delta.finish.error is not None:
            raise RuntimeError(delta.finish.error.message)
        output.tokens.extend(delta.token_ids)
        output.times.extend([time.perf_counter() - start] * len(delta.token_ids))
    return output


def load(settings: Settings) -> Phloem:
    return Phloem(settings)
