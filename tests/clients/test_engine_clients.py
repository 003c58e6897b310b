"""The client protocol, over an engine thread and over an engine process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from harness import request

from phloem.runtime.completion import collect
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.errors import EngineDeadError, ModelError, OverloadedError, RequestError
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import Constraint, Delta
from phloem.runtime.remote import remote_client

PROMPT = list(range(20, 60))


def config(tiny_model: Path, **options: object) -> EngineConfig:
    settings = {"kv_tokens": 4096, "check_invariants": True, "threads": 1, **options}
    return EngineConfig(model=str(tiny_model), dtype="float32", **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[local_client, remote_client])
def client(request: pytest.FixtureRequest, tiny_model: Path) -> Iterator[EngineClient]:
    made = request.param(config(tiny_model))
    yield made
    made.close()


async def idle(client: EngineClient) -> None:
    """Wait until the engine has let go of everything."""
    for _ in range(500):
        stats = await client.stats()
        if not (stats.running or stats.waiting or stats.pages_private or stats.pages_protected):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"pages are still held: {stats}")


async def first(deltas: AsyncIterator[Delta]) -> Delta:
    return await anext(deltas)


async def test_streams_deltas_to_the_end(client: EngineClient) -> None:
    each = request(PROMPT, n=2, max_new_tokens=6, ignore_eos=True)
    done = await collect(client.generate(each), 2)
    assert [len(c.token_ids) for c in done] == [6, 6]
    assert done[0].text == client.tokenizer.decode(done[0].token_ids)


async def test_many_at_once_do_not_mix(client: EngineClient) -> None:
    batch = [request([20 + i] * 12, max_new_tokens=9, ignore_eos=True) for i in range(20)]
    together = await asyncio.gather(*(collect(client.generate(each), 1) for each in batch))
    for i, done in enumerate(together):
        again = request([20 + i] * 12, max_new_tokens=9, ignore_eos=True)
        alone = await collect(client.generate(again), 1)
        assert done[0].token_ids == alone[0].token_ids


async def test_leaving_a_stream_early_frees_its_pages(client: EngineClient) -> None:
    for _ in range(10):
        deltas = client.generate(request(PROMPT, max_new_tokens=400, ignore_eos=True))
        await first(deltas)
        await deltas.aclose()
    await idle(client)


async def test_a_cancelled_reader_frees_its_pages(client: EngineClient) -> None:
    each = request(PROMPT, n=3, max_new_tokens=400, ignore_eos=True)
    task = asyncio.create_task(collect(client.generate(each), 3))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await idle(client)


async def test_abort_by_rid_ends_the_stream(client: EngineClient) -> None:
    each = request(PROMPT, max_new_tokens=400, ignore_eos=True)
    deltas = client.generate(each)
    await first(deltas)
    assert await client.abort(each.rid)
    reasons = [delta.finish.reason async for delta in deltas if delta.finish]
    assert reasons == ["abort"]
    assert not await client.abort(each.rid)


async def test_a_rid_in_use_is_refused_and_the_first_goes_on(client: EngineClient) -> None:
    each = request(PROMPT, max_new_tokens=50, ignore_eos=True)
    deltas = client.generate(each)
    start = await first(deltas)
    with pytest.raises(RequestError) as caught:
        await first(client.generate(each))
    assert caught.value.param == "rid"
    rest = [delta async for delta in deltas]
    assert sum(len(delta.token_ids) for delta in [start, *rest]) == 50


async def test_an_invalid_request_is_refused_before_it_is_queued(client: EngineClient) -> None:
    for fields in ({"temperature": -1.0}, {"n": 0}, {"max_new_tokens": -5}, {"top_p": 0.0}):
        with pytest.raises(RequestError) as caught:
            await first(client.generate(request(PROMPT, **fields)))
        assert caught.value.param in fields
    with pytest.raises(RequestError, match="512"):
        await first(client.generate(request([5] * 600)))


async def test_a_bad_constraint_comes_as_an_error(client: EngineClient) -> None:
    each = request(PROMPT, n=2, constraint=Constraint(kind="regex", text="[.*"))
    with pytest.raises(RequestError):
        await collect(client.generate(each), 2)


async def test_flush_and_stats(client: EngineClient) -> None:
    await collect(client.generate(request(PROMPT)), 1)
    await idle(client)
    assert (await client.stats()).pages_evictable > 0
    assert await client.flush_cache()
    stats = await client.stats()
    assert stats.pages_free == stats.pages_total


def test_serves_several_event_loops(client: EngineClient) -> None:
    async def once() -> list[int]:
        return (await collect(client.generate(request(PROMPT)), 1))[0].token_ids

    assert asyncio.run(once()) == asyncio.run(once())


async def test_a_full_queue_is_refused(tiny_model: Path) -> None:
    client = local_client(config(tiny_model, max_running=1, max_waiting=1))
    try:
        open_ = [client.generate(request(PROMPT, max_new_tokens=300)) for _ in range(2)]
        tasks = [asyncio.ensure_future(first(deltas)) for deltas in open_]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError, match="2"):
            await first(client.generate(request(PROMPT)))
        await asyncio.gather(*tasks)
    finally:
        client.close()


async def test_a_killed_engine_fails_its_requests_clearly(tiny_model: Path) -> None:
    client = remote_client(config(tiny_model))
    try:
        deltas = client.generate(request(PROMPT, max_new_tokens=400, ignore_eos=True))
        await first(deltas)
        os.kill(client._connection._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        with pytest.raises(EngineDeadError, match="exit code -9"):
            async for _ in deltas:
                pass
        assert not client.healthy
        with pytest.raises(EngineDeadError):
            await first(client.generate(request(PROMPT)))
        with pytest.raises(EngineDeadError):
            await client.stats()
    finally:
        client.close()


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    for start in (local_client, remote_client):
        with pytest.raises(ModelError):
            start(EngineConfig(model=str(tmp_path)))


async def test_closing_ends_running_requests(tiny_model: Path) -> None:
    client = local_client(config(tiny_model))
    deltas = client.generate(request(PROMPT, max_new_tokens=400, ignore_eos=True))
    await first(deltas)
    await asyncio.to_thread(client.close)
    with pytest.raises(EngineDeadError):
        async for _ in deltas:
            pass
