"""The deltas of all sequences of one HTTP request, as one stream or gathered.

A *slot* is a sequence's place in the answer: the ``n`` sequences of the first prompt, then those
of the second, and so on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from phloem.runtime.client import Client
from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Delta, GenerateRequest
from phloem.runtime.sessions import Continuation, generate

Deltas = AsyncGenerator[tuple[int, Delta], None]
"""(slot, delta) pairs; those of a slot are in order."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one HTTP request asks of the engine.

    Attributes:
        requests: one for each prompt.
        names: the API's names of engine fields that it calls otherwise, for error messages.
        arrived: when the HTTP request came, by ``time.perf_counter``.
        turn: where the only request goes on, if it is a session's turn.
    """

    requests: list[GenerateRequest]
    names: Mapping[str, str]
    arrived: float
    turn: Continuation | None = None

    @property
    def starts(self) -> list[int]:
        """The first slot of each prompt, and behind them the number of slots."""
        return list(accumulate((r.sampling.n for r in self.requests), initial=0))


async def run(client: Client, batch: Batch) -> Deltas:
    """The batch's deltas as they come; closing this generator aborts what still runs."""
    if len(batch.requests) == 1:
        source = _alone(client, batch)
        try:
            async for delta in source:
                yield delta.index, delta
        finally:
            await source.aclose()
        return
    merged = _merge([client.generate(request) for request in batch.requests])
    starts = batch.starts
    try:
        async for prompt, delta in merged:
            yield starts[prompt] + delta.index, delta
    finally:
        await merged.aclose()


def _alone(client: Client, batch: Batch) -> AsyncGenerator[Delta, None]:
    [request] = batch.requests
    if batch.turn is None:
        return client.generate(request)
    return generate(client, batch.turn, request)


async def _merge(sources: Sequence[AsyncGenerator[Delta, None]]) -> Deltas:
    """Run all sources side by side; the first error ends all."""
    queue: asyncio.Queue[tuple[int, Delta] | Exception | None] = asyncio.Queue()

    async def pump(number: int, source: AsyncGenerator[Delta, None]) -> None:
        try:
            async for delta in source:
                queue.put_nowait((number, delta))
            queue.put_nowait(None)
        except Exception as error:
            queue.put_nowait(error)

    pumps = [asyncio.create_task(pump(*each)) for each in enumerate(sources)]
    try:
        left = len(pumps)
        while left:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def gather(deltas: Deltas, slots: int) -> list[Completion]:
    """Wait for everything; the completions by slot."""
    completions = [Completion(slot) for slot in range(slots)]
    async for slot, delta in deltas:
        completions[slot].add(delta)
    return completions
