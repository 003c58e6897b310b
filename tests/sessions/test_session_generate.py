"""Turns over a real engine: what is sent, what is recorded, and what never is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_tools import history

from phloem.runtime.completion import Completion, collect
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.errors import RequestError
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import GenerateRequest, SamplingParams
from phloem.runtime.sessions import Continuation, Session, generate

ids = st.lists(st.integers(3, 300), min_size=1, max_size=24)


@pytest.fixture(scope="module")
def client(tiny_model: Path) -> Iterator[EngineClient]:
    config = EngineConfig(
        model=str(tiny_model), dtype="float32", kv_tokens=4096, threads=1, check_invariants=True
    )
    made = local_client(config)
    yield made
    made.close()


class Recording:
    """A client that keeps what passes through it."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self.requests: list[GenerateRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def generate(self, request: GenerateRequest) -> Any:
        self.requests.append(request)
        return self._client.generate(request)


names = (f"turn-{number}" for number in range(1_000_000))


def turn(where: Continuation, new: list[int], **fields: Any) -> GenerateRequest:
    own = {k: fields.pop(k) for k in list(fields) if k in GenerateRequest.__struct_fields__}
    greedy = {"temperature": 0.0, "max_new_tokens": 6, "ignore_eos": True, **fields}
    own.setdefault("rid", next(names))
    return GenerateRequest(
        input_ids=where.history() + new, sampling=SamplingParams(**greedy), **own
    )


async def say(client: Any, where: Continuation, new: list[int], **fields: Any) -> Completion:
    async with aclosing(generate(client, where, turn(where, new, **fields))) as deltas:
        [completion] = await collect(deltas, 1)
    return completion


async def alone(client: EngineClient, prompt: list[int]) -> list[int]:
    """What the engine makes of a prompt that is sent at once."""
    [completion] = await collect(
        client.generate(turn(Continuation(Session("none")), prompt, cache_salt="apart")), 1
    )
    return completion.token_ids


async def test_a_conversation_is_the_same_as_its_prompts_sent_whole(client: EngineClient) -> None:
    session, sent = Session("s"), []
    cached = []
    for new in (list(range(20, 52)), [60, 61], list(range(70, 90)), [95]):
        completion = await say(client, session.resume(), new)
        sent += new
        assert completion.token_ids == await alone(client, sent)
        assert completion.prompt_tokens == len(sent)
        sent += completion.token_ids
        assert history(session) == sent
        cached.append(completion.cached_tokens)
    assert cached == sorted(cached)
    assert cached[-1] >= len(sent) - 7 - 16


@settings(max_examples=10, deadline=None)
@given(data=st.data())
async def test_any_tree_of_turns_says_what_its_prompts_say(
    client: EngineClient, data: st.DataObject
) -> None:
    session, known = Session("s"), [None]
    for _ in range(data.draw(st.integers(1, 5))):
        where = session.resume(
            data.draw(st.sampled_from(known)),
            offset=data.draw(st.sampled_from([None, 1, -1])),
            drop_previous_output=data.draw(st.booleans()),
        )
        rid, new = next(names), data.draw(ids)
        completion = await say(client, where, new, rid=rid)
        assert completion.token_ids == await alone(client, where.history() + new)
        assert history(session, rid) == where.history() + new + completion.token_ids
        known.append(rid)


@pytest.mark.parametrize("news", [1, 3])
async def test_a_turn_that_is_left_changes_nothing(client: EngineClient, news: int) -> None:
    session = Session("s")
    first = await say(client, session.resume(), [20, 21, 22])
    before = history(session)
    where = session.resume()
    left = turn(where, [30, 31], max_new_tokens=200)
    async with aclosing(generate(client, where, left)) as deltas:
        for _ in range(news):
            await anext(deltas)
        assert session.tokens == len(before) + 202
    assert history(session) == before == [20, 21, 22, *first.token_ids]
    assert session.tokens == len(before)
    again = await say(client, session.resume(), [40])
    assert again.token_ids == await alone(client, [*before, 40])
    assert again.prompt_tokens == len(before) + 1


async def test_an_aborted_turn_changes_nothing(client: EngineClient) -> None:
    session = Session("s")
    await say(client, session.resume(), [20, 21, 22])
    before = history(session)
    where = session.resume()
    async with aclosing(
        generate(client, where, turn(where, [30], rid="cut", max_new_tokens=200))
    ) as deltas:
        await anext(deltas)
        await client.abort("cut")
        last = [delta async for delta in deltas][-1]
    assert last.finish is not None and last.finish.reason == "abort"
    assert history(session) == before
    assert session.turn("cut") is None
    await say(client, session.resume(), [30], rid="cut")
    assert history(session, "cut")[: len(before) + 1] == [*before, 30]


async def test_a_failed_turn_changes_nothing(client: EngineClient) -> None:
    session = Session("s")
    with pytest.raises(Exception, match="time"):
        await say(client, session.resume(), [20], deadline=1e-9)
    assert history(session) == []
    assert session.tokens == 0
    assert (await say(client, session.resume(), [20])).prompt_tokens == 1


async def test_the_turn_is_there_when_its_end_is_told(client: EngineClient) -> None:
    session = Session("s", capacity=20)
    where = session.resume()
    async with aclosing(generate(client, where, turn(where, [20, 21], rid="a"))) as deltas:
        async for delta in deltas:
            assert (session.turn("a") is not None) == (delta.finish is not None)
            if delta.finish is not None:
                await say(client, session.resume(), [22] * 6)
    assert session.tokens == 20


async def test_turns_of_one_parent_run_side_by_side(client: EngineClient) -> None:
    session = Session("s")
    await say(client, session.resume(), [20, 21, 22], rid="root")
    where = session.resume("root")
    first, second = turn(where, [30], rid="one"), turn(where, [31], rid="two")
    async with (
        aclosing(generate(client, where, first)) as one,
        aclosing(generate(client, where, second)) as two,
    ):
        await anext(one)
        [done] = await collect(two, 1)
        assert history(session) == [*where.history(), 31, *done.token_ids]
        async for _ in one:
            pass
    assert history(session, "one")[: where.kept + 1] == [*where.history(), 30]


async def test_the_end_token_is_a_part_of_the_history(client: EngineClient) -> None:
    session = Session("s")
    sampling = {"ignore_eos": False, "logit_bias": {2: 100.0}}
    completion = await say(client, session.resume(), [20], **sampling)
    assert completion.token_ids == [2]
    assert history(session) == [20, 2]


async def test_a_turn_may_only_fill_the_cache_or_only_go_on(client: EngineClient) -> None:
    session = Session("s")
    await say(client, session.resume(), [20, 21], max_new_tokens=0)
    assert history(session) == [20, 21]
    completion = await say(client, session.resume(), [])
    assert history(session) == [20, 21, *completion.token_ids]
    assert completion.token_ids == await alone(client, [20, 21])
    with pytest.raises(RequestError, match="adds nothing"):
        await say(client, session.resume(), [], max_new_tokens=0)


async def test_the_cache_is_asked_to_keep_each_turn(client: EngineClient) -> None:
    recording = Recording(client)
    session = Session("s", timeout=30)
    await say(recording, session.resume(), [20])
    await say(recording, session.resume(), [20], pin_ttl=90.0)
    assert [request.pin_ttl for request in recording.requests] == [30, 90]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"max_new_tokens": "3"}, "max_new_tokens"),
        ({"rid": ""}, "rid"),
        ({"pin_ttl": 3601.0}, "pin_ttl"),
        ({"max_new_tokens": 11}, "input_ids"),
        ({"max_new_tokens": None}, "input_ids"),
    ],
)
async def test_what_is_refused_changes_nothing(
    client: EngineClient, fields: dict[str, Any], param: str
) -> None:
    session = Session("s", capacity=12)
    with pytest.raises(RequestError) as refused:
        await say(client, session.resume(), [20, 21], **fields)
    assert refused.value.param == param
    assert session.tokens == 0
    await say(client, session.resume(), [20, 21], max_new_tokens=10)
