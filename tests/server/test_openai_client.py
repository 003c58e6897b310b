"""The official Python client, synchronous and asynchronous, against the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import pytest
from conftest import Serving, serving
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from phloem.runtime.protocol import ErrorInfo, GenerateRequest
from phloem.runtime.text.tokenizer import Tokenizer

MESSAGES = [{"role": "user", "content": "hello tree"}]
ANSWER = "user\nhello tree"


class Person(BaseModel):
    name: str
    age: int


@pytest.fixture
def client(toy: Serving) -> Iterator[OpenAI]:
    with OpenAI(base_url=toy.url + "/v1", api_key="none", max_retries=0) as made:
        yield made


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["toy"]
    assert client.models.retrieve("toy").object == "model"
    with pytest.raises(openai.NotFoundError, match="gpt"):
        client.models.retrieve("gpt")


def test_chat(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="toy", messages=MESSAGES, n=2, logprobs=True, top_logprobs=1, seed=3
    )
    assert [choice.message.content for choice in answer.choices] == [ANSWER, ANSWER]
    assert answer.choices[0].logprobs.content[0].top_logprobs[0].bytes
    assert answer.usage.prompt_tokens_details.cached_tokens > 0


def test_chat_stream(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="toy", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == ANSWER
    assert chunks[-1].usage.total_tokens > 0


def test_chat_stream_helper(client: OpenAI) -> None:
    with client.chat.completions.stream(model="toy", messages=MESSAGES) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == ANSWER


def test_completions(client: OpenAI) -> None:
    answer = client.completions.create(
        model="toy", prompt=["abc", "def"], max_tokens=3, logprobs=2, echo=True
    )
    assert answer.choices[0].text.startswith("abc")
    assert answer.choices[1].logprobs.text_offset[0] == 0
    stream = client.completions.create(model="toy", prompt="abc", max_tokens=3, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "abc"


def test_errors_have_their_types(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as not_found:
        client.chat.completions.create(model="gpt-4", messages=MESSAGES)
    assert not_found.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as too_long:
        client.completions.create(model="toy", prompt=[40] * 5000)
    assert too_long.value.code == "context_length_exceeded"
    assert too_long.value.param == "prompt"
    assert "5000" in too_long.value.message
    assert "2048" in too_long.value.message
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.chat.completions.create(model="toy", messages=MESSAGES, temperature=-1)


def test_parse_into_a_model(tokenizer: Tokenizer) -> None:
    def script(request: GenerateRequest) -> list[int] | ErrorInfo:
        constraint = request.sampling.constraint
        assert constraint is not None
        if "forbidden" in constraint.text:
            return ErrorInfo(
                status=400, message="not enforceable", code="unsupported", pointer="/properties/x"
            )
        return [*tokenizer.encode('{"name": "Ada", "age": 36}'), 2]

    with serving(tokenizer, script=script) as toy:
        client = OpenAI(base_url=toy.url + "/v1", api_key="none", max_retries=0)
        parsed = client.chat.completions.parse(
            model="toy", messages=MESSAGES, response_format=Person
        )
        assert parsed.choices[0].message.parsed == Person(name="Ada", age=36)
        assert '"name"' in toy.engine.added[0].sampling.constraint.text
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"forbidden": 1}}}
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as refused:
                client.chat.completions.create(
                    model="toy", messages=MESSAGES, response_format=schema, stream=stream
                )
            assert refused.value.param == "response_format"
            assert refused.value.body["pointer"] == "/properties/x"


async def test_many_asynchronous_streams_do_not_mix(toy: Serving) -> None:
    async with AsyncOpenAI(base_url=toy.url + "/v1", api_key="none", max_retries=0) as client:

        async def ask(number: int) -> None:
            messages = [{"role": "user", "content": f"number {number}"}]
            stream = await client.chat.completions.create(
                model="toy", messages=messages, stream=True
            )
            parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(parts) == f"user\nnumber {number}"

        await asyncio.gather(*(ask(number) for number in range(32)))
