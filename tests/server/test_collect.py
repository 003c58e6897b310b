"""Many requests as one stream of deltas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from phloem.runtime.errors import OverloadedError
from phloem.runtime.protocol import Delta, Finish, GenerateRequest, SamplingParams
from phloem.runtime.server.collect import Batch, gather, run


class Source:
    """The part of a client that ``run`` uses: each request counts to its length."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.open: set[str] = set()

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Delta]:
        self.open.add(request.rid)
        try:
            length = request.sampling.max_new_tokens or 0
            for number in range(length):
                await asyncio.sleep(0)
                if request.rid == self.fails and number == 1:
                    raise OverloadedError("full")
                for index in range(request.sampling.n):
                    finish = Finish(reason="length") if number + 1 == length else None
                    yield Delta(rid=request.rid, index=index, text=str(number), finish=finish)
        finally:
            self.open.discard(request.rid)


def batch(*lengths: int, n: int = 1) -> Batch:
    requests = [
        GenerateRequest(
            rid=str(number), input_ids=[1], sampling=SamplingParams(max_new_tokens=length, n=n)
        )
        for number, length in enumerate(lengths)
    ]
    return Batch(requests, {}, 0.0)


async def test_slots_are_prompt_major() -> None:
    each = batch(2, 3, n=2)
    assert each.starts == [0, 2, 4]
    done = await gather(run(Source(), each), 4)  # type: ignore[arg-type]
    assert [completion.text for completion in done] == ["01", "01", "012", "012"]


async def test_an_error_ends_all() -> None:
    source = Source(fails="1")
    with pytest.raises(OverloadedError):
        async with aclosing(run(source, batch(9, 9, 9))) as deltas:  # type: ignore[arg-type]
            async for _ in deltas:
                assert "0" in source.open
    assert not source.open


@pytest.mark.parametrize("lengths", [(9,), (9, 9, 9)])
async def test_leaving_early_closes_all(lengths: tuple[int, ...]) -> None:
    source = Source()
    before = len(asyncio.all_tasks())
    async with aclosing(run(source, batch(*lengths))) as deltas:  # type: ignore[arg-type]
        await anext(deltas)
        assert source.open
    assert not source.open
    assert len(asyncio.all_tasks()) == before


async def test_cancelling_closes_all() -> None:
    source = Source()

    async def read() -> None:
        async with aclosing(run(source, batch(10**6, 10**6))) as deltas:  # type: ignore[arg-type]
            async for _ in deltas:
                pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not source.open
