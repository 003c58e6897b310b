"""``POST /v1/chat/completions``, by plain HTTP."""

from __future__ import annotations

from itertools import chain

import pytest
from conftest import Serving
from sse_reader import error_of, events

from phloem.runtime.text.tokenizer import Tokenizer

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello tree"}]


def prompt_of(toy: Serving, rid: str) -> str:
    request = next(each for each in toy.engine.added if each.rid == rid)
    return toy.client.tokenizer.decode(request.input_ids, skip_special_tokens=False)


def test_answer(toy: Serving) -> None:
    answer = toy.post(PATH, {"model": "toy", "messages": HELLO, "max_tokens": 50}).json()
    assert answer["object"] == "chat.completion"
    [choice] = answer["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "user\nhello tree",
        "refusal": None,
    }
    assert choice["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_stream_has_the_exact_chunk_shape(toy: Serving) -> None:
    body = {"messages": HELLO, "n": 2, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = events(toy.post(PATH, body).text)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({(chunk["id"], chunk["created"]) for chunk in [*chunks, last]}) == 1
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > last["usage"]["completion_tokens"]
    for index in (0, 1):
        choices = [c for chunk in chunks for c in chunk["choices"] if c["index"] == index]
        first, *contents, end = choices
        assert first["delta"] == {"role": "assistant", "content": ""}
        assert all(set(c["delta"]) == {"content"} for c in contents)
        assert all(c["finish_reason"] is None for c in [first, *contents])
        assert (end["delta"], end["finish_reason"]) == ({}, "stop")
        assert "".join(c["delta"]["content"] for c in contents) == "user\nhello tree"


def test_without_usage_there_is_none(toy: Serving) -> None:
    chunks = events(toy.post(PATH, {"messages": HELLO, "stream": True}).text)
    assert all("usage" not in chunk and len(chunk["choices"]) == 1 for chunk in chunks)


def test_logprobs_carry_bytes(toy: Serving, tokenizer: Tokenizer) -> None:
    messages = [{"role": "user", "content": "漢字😀"}]
    body = {"messages": messages, "logprobs": True, "top_logprobs": 2}
    content = toy.post(PATH, body).json()["choices"][0]["logprobs"]["content"]
    visible = b"".join(bytes(entry["bytes"]) for entry in content if entry["token"][:2] != "<|")
    assert visible.decode() == "user\n漢字😀"
    assert all(len(entry["top_logprobs"]) == 2 for entry in content)
    streamed = events(toy.post(PATH, {**body, "stream": True}).text)
    parts = [c["logprobs"]["content"] for s in streamed for c in s["choices"] if c["logprobs"]]
    assert list(chain.from_iterable(parts)) == content


def test_messages_of_all_roles_and_parts(toy: Serving) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ]
    response = toy.post(PATH, {"messages": messages, "rid": "roles", "max_tokens": 1})
    assert response.status_code == 200
    assert prompt_of(toy, "roles") == (
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n"
        "<|im_start|>assistant\n<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_continue_the_final_message(toy: Serving) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "Once upon"}]
    body = {"messages": messages, "continue_final_message": True, "rid": "open", "max_tokens": 1}
    assert toy.post(PATH, body).status_code == 200
    assert prompt_of(toy, "open").endswith("<|im_start|>assistant\nOnce upon")
    wrong = toy.post(PATH, {**body, "add_generation_prompt": True})
    assert error_of(wrong.content)["param"] == "continue_final_message"
    wrong = toy.post(PATH, {**body, "messages": HELLO})
    assert error_of(wrong.content)["param"] == "continue_final_message"


def test_no_generation_prompt(toy: Serving) -> None:
    body = {"messages": HELLO, "add_generation_prompt": False, "rid": "bare", "max_tokens": 1}
    assert toy.post(PATH, body).status_code == 200
    assert prompt_of(toy, "bare").endswith("hello tree<|im_end|>\n")


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"lora_path": "x"}, "lora_path"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_object"}, "regex": "a"}, "response_format"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
        ),
    ],
)
def test_bad_fields_are_named(toy: Serving, extra: dict[str, object], param: str) -> None:
    response = toy.post(PATH, {"messages": HELLO, **extra})
    assert response.status_code == 400
    error = error_of(response.content)
    assert error["param"] == param
    assert param.split(".")[-1].split("[")[0] in error["message"]


def test_empty_tools_are_no_tools(toy: Serving) -> None:
    for extra in (
        {"tools": None, "tool_choice": None},
        {"tools": [], "functions": []},
        {"tools": [{"type": "function"}], "tool_choice": "none"},
        {"tool_choice": "auto", "parallel_tool_calls": True},
        {"modalities": ["text"], "store": False, "metadata": {"a": "b"}, "audio": None},
    ):
        assert toy.post(PATH, {"messages": HELLO, **extra}).status_code == 200


def test_response_formats_arrive(toy: Serving) -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    formats = {
        "none": ({"type": "text"}, None),
        "object": ({"type": "json_object"}, ("json_object", "")),
        "schema": (
            {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": True}},
            ("json_schema", '{"type": "object", "properties": {"b": {}, "a": {}}}'),
        ),
    }
    for rid, (response_format, expected) in formats.items():
        body = {"messages": HELLO, "response_format": response_format, "rid": rid}
        assert toy.post(PATH, body).status_code == 200
        request = next(each for each in toy.engine.added if each.rid == rid)
        constraint = request.sampling.constraint
        got = None if constraint is None else (constraint.kind, constraint.text)
        assert got == expected


def test_without_a_limit_it_fills_the_context(toy: Serving) -> None:
    assert toy.post(PATH, {"messages": HELLO, "rid": "free"}).status_code == 200
    request = next(each for each in toy.engine.added if each.rid == "free")
    assert request.sampling.max_new_tokens is None
