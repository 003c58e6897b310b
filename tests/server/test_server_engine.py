"""The server over real engines: constraints, cached prefixes, aborts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Serving, serving_client
from openai import OpenAI
from pydantic import BaseModel
from sse_reader import error_of, events

from phloem.runtime.config import EngineConfig
from phloem.runtime.in_process import local_client
from phloem.runtime.remote import remote_client


@pytest.fixture(scope="module")
def tiny(tiny_model: Path) -> Iterator[Serving]:
    """An engine on the tiny random model, in this process."""
    config = EngineConfig(
        model=str(tiny_model), dtype="float32", kv_tokens=4096, threads=1, check_invariants=True
    )
    client = local_client(config)
    with serving_client(client) as made:
        yield made
    client.close()


SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Ada", "Alan"]}, "alive": {"type": "boolean"}},
    "required": ["name", "alive"],
    "additionalProperties": False,
}


def test_cached_tokens_are_told(tiny: Serving) -> None:
    body = {"prompt": list(range(20, 84)), "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    cold = tiny.post("/v1/completions", body).json()
    warm = tiny.post("/v1/completions", body).json()
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] >= 48
    assert warm["choices"] == cold["choices"]
    assert tiny.post("/flush_cache", {}).status_code == 200
    again = tiny.post("/v1/completions", body).json()
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@pytest.mark.parametrize("stream", [False, True])
def test_output_keeps_to_the_schema(tiny: Serving, stream: bool) -> None:
    body = {
        "messages": [{"role": "user", "content": "who?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}},
        "temperature": 2,
        "seed": 3,
        "n": 4,
        "stream": stream,
    }
    response = tiny.post("/v1/chat/completions", body)
    assert response.status_code == 200, response.text
    texts = [""] * 4
    if stream:
        for chunk in events(response.text):
            for choice in chunk["choices"]:
                texts[choice["index"]] += choice["delta"].get("content", "")
    else:
        texts = [choice["message"]["content"] for choice in response.json()["choices"]]
    for text in texts:
        found = json.loads(text)
        assert found["name"] in ("Ada", "Alan")
        assert isinstance(found["alive"], bool)


@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_enforced_is_refused(tiny: Serving, stream: bool) -> None:
    body = {"text": "a", "stream": stream, "sampling_params": {"json_schema": {"type": 5}}}
    response = tiny.post("/generate", body)
    assert response.status_code == 400
    error = error_of(response.content)
    assert error["param"] == "json_schema"
    assert error["pointer"].endswith("/type")
    regex = tiny.post("/v1/completions", {"prompt": "a", "regex": "(", "stream": stream})
    assert regex.status_code == 400
    assert error_of(regex.content)["param"] == "regex"


def test_streamed_and_whole_scores_agree(tiny: Serving) -> None:
    body = {"prompt": list(range(20, 40)), "echo": True, "logprobs": 3, "max_tokens": 6}
    body |= {"temperature": 0, "ignore_eos": True}
    whole = tiny.post("/v1/completions", body).json()["choices"][0]["logprobs"]
    streamed = events(tiny.post("/v1/completions", {**body, "stream": True}).text)
    for name, column in whole.items():
        parts = [c["logprobs"][name] for s in streamed for c in s["choices"] if c["logprobs"]]
        assert [value for part in parts for value in part] == column
    assert len(whole["tokens"]) == 26


class Person(BaseModel):
    name: str
    age: int


@pytest.mark.slow
def test_the_default_model_in_its_own_process(default_model: Path) -> None:
    # In bfloat16 the first word of the answer about Paris is a tie.
    config = EngineConfig(model=str(default_model), dtype="float32", kv_tokens=4096)
    client = remote_client(config)
    try:
        with serving_client(client) as real:
            openai = OpenAI(base_url=real.url + "/v1", api_key="none", max_retries=0)
            [model] = openai.models.list()
            messages = [{"role": "user", "content": "Ada Lovelace is 36. Give me JSON."}]
            for turn in range(2):
                answer = openai.chat.completions.parse(
                    model=model.id, messages=messages, response_format=Person, temperature=0
                )
                assert isinstance(answer.choices[0].message.parsed, Person)
                cached = answer.usage.prompt_tokens_details.cached_tokens
                assert cached == 0 if turn == 0 else cached > 0
            said = openai.chat.completions.create(
                model=model.id,
                messages=[{"role": "user", "content": "What is the capital of France?"}],
                temperature=0,
                max_tokens=24,
            )
            assert "Paris" in said.choices[0].message.content
            assert 'finish_reason="stop"' in real.get("/metrics").text
    finally:
        client.close()
