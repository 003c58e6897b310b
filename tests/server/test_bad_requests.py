"""Whatever comes, the answer is a clear error or a result, never a 5xx or a silence."""

from __future__ import annotations

import json
import socket

import pytest
from conftest import Serving, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sse_reader import error_of

from phloem.runtime.server import ServerSettings
from phloem.runtime.text.tokenizer import Tokenizer

POSTS = (
    "/generate",
    "/v1/completions",
    "/v1/chat/completions",
    "/abort_request",
    "/tokenize",
    "/detokenize",
    "/open_session",
    "/close_session",
)


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b'{"text": "\xff"}',
        b'{"ignored": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 1} trailing',
        b"\xef\xbb\xbf{}",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\x00" * 50,
    ],
)
def test_no_json_object(toy: Serving, path: str, body: bytes) -> None:
    response = toy.http.post(path, content=body)
    assert response.status_code == 400
    error_of(response.content)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"text": 5}, "text"),
        ({"text": ["a", 5]}, "text[1]"),
        ({"text": []}, "text"),
        ({"text": ""}, "text"),
        ({"text": "a", "input_ids": [5]}, "text"),
        ({}, "text"),
        ({"input_ids": []}, "input_ids"),
        ({"input_ids": [[]]}, "input_ids"),
        ({"input_ids": [1, [2]]}, "input_ids"),
        ({"input_ids": [-1]}, "input_ids"),
        ({"input_ids": [400]}, "input_ids"),
        ({"input_ids": [10**30]}, "input_ids"),
        ({"input_ids": [1.5]}, "input_ids[0]"),
        ({"input_ids": [5] * 2048}, "input_ids"),
        ({"text": "a", "rid": ""}, "rid"),
        ({"text": "a", "rid": "x" * 257}, "rid"),
        ({"text": "a", "rid": ["x", "y"]}, "rid"),
        ({"text": ["a", "b"], "rid": ["x", "x"]}, "rid"),
        ({"text": "a", "priority": 2**40}, "priority"),
        ({"text": "a", "pin_ttl": -1}, "pin_ttl"),
        ({"text": "a", "pin_ttl": 3601}, "pin_ttl"),
        ({"text": "a", "calls_left": -1}, "calls_left"),
        ({"text": "a", "calls_left": 1.5}, "calls_left"),
        ({"text": "a", "program": "x" * 257}, "program"),
        ({"text": "a", "return_logprob": True, "top_logprobs_num": 21}, "top_logprobs_num"),
        ({"text": "a", "return_logprob": True, "logprob_start_len": 2}, "logprob_start_len"),
        ({"text": "a", "return_logprob": True, "logprob_start_len": -2}, "logprob_start_len"),
        ({"text": "a", "return_logprob": True, "token_ids_logprob": [400]}, "token_ids_logprob"),
        ({"text": "a", "lora_path": "x"}, "lora_path"),
        ({"text": "a", "sampling_params": [{}, {}]}, "sampling_params"),
        ({"text": ["a"], "sampling_params": [{"top_k": "x"}]}, "sampling_params[0].top_k"),
    ],
)
def test_bad_native_fields_are_named(toy: Serving, fields: dict[str, object], param: str) -> None:
    response = toy.post("/generate", fields)
    assert response.status_code == 400, response.text
    error = error_of(response.content)
    assert error["param"] == param
    assert param.split("[")[0].split(".")[0] in error["message"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": 0}, "(0, 1]"),
        ({"top_p": 1.1}, "(0, 1]"),
        ({"top_k": 0}, "top_k"),
        ({"min_p": 2}, "[0, 1]"),
        ({"n": 0}, "[1, 128]"),
        ({"n": 129}, "128"),
        ({"n": 10**9}, "1024"),
        ({"n": -5}, "n"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"max_new_tokens": 2048}, "2047"),
        ({"max_new_tokens": 10**30}, "max_new_tokens"),
        ({"min_new_tokens": 9, "max_new_tokens": 3}, "min_new_tokens"),
        ({"stop": ["x"] * 33}, "32"),
        ({"stop": ""}, "stop"),
        ({"stop_regex": "("}, "stop_regex"),
        ({"stop_regex": "a*"}, "stop_regex"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"logit_bias": {"400": 1}}, "399"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"seed": 2**63}, "seed"),
        ({"frequency_penalty": 3}, "[-2, 2]"),
        ({"repetition_penalty": 0}, "[0.01, 2]"),
        ({"spaces_between_special_tokens": False}, "spaces_between_special_tokens"),
        ({"regex": "a", "ebnf": "b"}, "exclude each other"),
        ({"json_schema": 5}, "json_schema"),
        ({"temprature": 1}, "temprature"),
        ({"beam_width": 4}, "beam_width"),
    ],
)
def test_bad_sampling_fields_tell_the_limit(
    toy: Serving, fields: dict[str, object], word: str
) -> None:
    response = toy.post("/generate", {"text": "a", "sampling_params": fields})
    assert response.status_code == 400, response.text
    assert word in error_of(response.content)["message"]


@pytest.mark.parametrize("depth", [200, 600, 800, 850, 900, 950, 990])
def test_deep_values_are_taken_or_refused(toy: Serving, depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    for path, body in (
        ("/generate", b'{"text": "a", "sampling_params": {"json_schema": %s}}'),
        ("/generate", b'{"text": "a", "unknown": %s}'),
        ("/v1/completions", b'{"prompt": "a", "json_schema": %s}'),
        (
            "/v1/chat/completions",
            b'{"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": %s}',
        ),
        ("/v1/chat/completions", b'{"messages": [{"role": "assistant", "tool_calls": [%s]}]}'),
    ):
        response = toy.http.post(path, content=body % deep)
        assert response.status_code in (200, 400), response.text


def test_a_bad_request_in_a_batch_starts_none(toy: Serving) -> None:
    before = len(toy.engine.added)
    body = {"input_ids": [[40], [41], [500]], "stream": True}
    response = toy.post("/generate", body)
    assert response.status_code == 400
    assert len(toy.engine.added) == before


def test_a_running_rid_is_refused_and_stays_running(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, delay=0.01) as toy:
        sampling = {"max_new_tokens": 40, "ignore_eos": True}
        body = {"text": "a", "rid": "same", "stream": True, "sampling_params": sampling}
        with toy.stream("/generate", body) as lines:
            next(lines)
            second = toy.post("/v1/completions", {"prompt": "a", "rid": "same"})
            assert second.status_code == 400
            assert error_of(second.content)["code"] == "duplicate_rid"
            assert list(lines)[-1] == "data: [DONE]"
        assert toy.post("/v1/completions", {"prompt": "a", "rid": "same"}).status_code == 200


@pytest.fixture(scope="module")
def small(tokenizer: Tokenizer):
    with serving(tokenizer, ServerSettings(max_body_bytes=2048, max_batch=4)) as made:
        yield made


def test_large_bodies_are_refused(small: Serving) -> None:
    for size in (3_000, 10 << 20):
        response = small.post("/v1/completions", {"prompt": "x" * size})
        assert response.status_code == 413
        assert "2048" in error_of(response.content)["message"]

    def chunks():
        for _ in range(100):
            yield b"x" * 1000

    response = small.http.post("/v1/completions", content=chunks())
    assert response.status_code == 413
    assert small.post("/v1/completions", {"prompt": "fine"}).status_code == 200


def test_a_declared_length_is_refused_without_reading(small: Serving) -> None:
    with socket.create_connection(("127.0.0.1", small.port), timeout=5) as raw:
        raw.sendall(b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
        assert raw.recv(64).startswith(b"HTTP/1.1 413")


def test_batches_are_bounded(small: Serving) -> None:
    for body in (
        {"prompt": ["a"] * 5},
        {"prompt": ["a", "b"], "n": 3},
        {"prompt": [[40]] * 5},
    ):
        response = small.post("/v1/completions", body)
        assert response.status_code == 400
        assert "limit is 4" in error_of(response.content)["message"]
    many = small.post("/generate", {"input_ids": [[40]] * 5})
    assert "limit is 4" in error_of(many.content)["message"]


def test_unknown_routes_and_methods(toy: Serving) -> None:
    assert error_of(toy.get("/v1/nothing").content)["code"] == "not_found"
    assert toy.get("/generate").status_code == 405
    error_of(toy.get("/generate").content)


FIELDS = {
    "/generate": """text input_ids sampling_params rid stream return_logprob logprob_start_len
        top_logprobs_num token_ids_logprob priority extra_key pin_ttl calls_left
        session_params""",
    "/v1/completions": """prompt n best_of echo logprobs max_tokens stop stream stream_options seed
        logit_bias temperature top_k json_schema""",
    "/v1/chat/completions": """messages n logprobs top_logprobs max_tokens tools response_format
        stream tool_choice chat_template_kwargs stop model""",
    "/abort_request": "rid abort_all",
    "/tokenize": "prompt add_special_tokens model",
    "/detokenize": "tokens skip_special_tokens",
    "/open_session": "session_id capacity_of_str_len timeout",
    "/close_session": "session_id",
}
SAMPLING = ["max_new_tokens", "n", "stop", "stop_regex", "logit_bias", "regex", "choices", "top_p"]
MESSAGE = ["role", "content", "name", "tool_calls", "tool_call_id"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-2, 50)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["user", "assistant", "text", "toy", "json_schema", "a", "none"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SAMPLING, *MESSAGE, "type", "7"]), inner, max_size=4)
    ),
    max_leaves=8,
)
plausible = {
    "text": st.just("hello"),
    "prompt": st.just("hello"),
    "input_ids": st.just([40, 41]),
    "messages": st.just([{"role": "user", "content": "hello"}]),
    "tokens": st.just([40]),
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    path = draw(st.sampled_from(POSTS))
    names = draw(st.lists(st.sampled_from(FIELDS[path].split()), unique=True, max_size=6))
    body = {name: draw(plausible.get(name, st.nothing()) | values) for name in names}
    return path, body


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_any_json_gets_a_result_or_a_clear_error(
    toy: Serving, request_: tuple[str, dict[str, object]]
) -> None:
    path, body = request_
    response = toy.http.post(path, content=json.dumps(body))
    assert response.status_code < 500, (path, body, response.text)
    if response.status_code >= 400:
        error_of(response.content)
    assert not toy.service.active
