"""A client that leaves takes its requests with it."""

from __future__ import annotations

import json
import random
import socket

import pytest
from conftest import Serving, serving, until
from sse_reader import error_of

from phloem.runtime.protocol import ErrorInfo
from phloem.runtime.server import ServerSettings
from phloem.runtime.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def slow(tokenizer: Tokenizer):
    with serving(tokenizer, delay=0.002) as made:
        made.get("/health")
        yield made


def post_raw(toy: Serving, path: str, body: dict[str, object]) -> socket.socket:
    raw = socket.create_connection(("127.0.0.1", toy.port), timeout=10)
    content = json.dumps(body).encode()
    raw.sendall(
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
        % (path.encode(), len(content), content)
    )
    return raw


def generate_body(**fields: object) -> dict[str, object]:
    sampling = {"max_new_tokens": 2000, "ignore_eos": True, "n": fields.pop("n", 1)}
    return {"text": "ab", "sampling_params": sampling, **fields}


CASES = [
    ("/generate", generate_body(stream=True)),
    ("/generate", generate_body(stream=False)),
    ("/generate", generate_body(stream=True, text=["a", "b", "c"], n=2)),
    ("/generate", generate_body(stream=False, text=["a", "b", "c"])),
    ("/v1/completions", {"prompt": "ab", "max_tokens": 2000, "stream": True, "n": 3}),
    ("/v1/completions", {"prompt": "ab", "max_tokens": 2000}),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "ab"}], "ignore_eos": True, "stream": True},
    ),
]


@pytest.mark.parametrize(("path", "body"), CASES)
def test_leaving_aborts_at_once(slow: Serving, path: str, body: dict[str, object]) -> None:
    tasks = slow.tasks()
    for _ in range(8):
        raw = post_raw(slow, path, body)
        until(lambda: bool(slow.engine.running))
        if body.get("stream"):
            assert raw.recv(4096).startswith(b"HTTP/1.1 200")
        raw.close()
        until(lambda: not slow.engine.running and not slow.service.active)
    assert {each.rid for each in slow.engine.added} <= set(slow.engine.aborted)
    until(lambda: slow.tasks() <= tasks)


def test_many_leave_at_random_moments(slow: Serving) -> None:
    choose = random.Random(5)
    tasks = slow.tasks()
    sockets = []
    for _ in range(120):
        path, body = choose.choice(CASES)
        sockets.append(post_raw(slow, path, body))
        if choose.random() < 0.7:
            raw = sockets.pop(choose.randrange(len(sockets)))
            if choose.random() < 0.5:
                # Unread data makes the close a reset.
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
    for raw in sockets:
        raw.close()
    until(lambda: not slow.engine.running and not slow.service.active, 20)
    until(lambda: slow.tasks() <= tasks, 20)
    assert slow.post("/generate", {"text": "ab"}).status_code == 200


def test_a_half_sent_body_starts_nothing(slow: Serving) -> None:
    before = len(slow.engine.added)
    raw = socket.create_connection(("127.0.0.1", slow.port))
    raw.sendall(b'POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"text"')
    raw.close()
    assert slow.get("/health").status_code == 200
    assert len(slow.engine.added) == before


def test_a_client_that_does_not_read_holds_up_no_other(slow: Serving) -> None:
    body = generate_body(stream=True, text=["ab"] * 4, return_logprob=True)
    deaf = post_raw(slow, "/generate", body)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    until(lambda: bool(slow.engine.running))
    for _ in range(5):
        assert slow.post("/generate", {"text": "ab"}).status_code == 200
    deaf.close()
    until(lambda: not slow.service.active)


def test_keep_alive_serves_one_after_another(slow: Serving) -> None:
    raw = socket.create_connection(("127.0.0.1", slow.port), timeout=5)
    for _ in range(3):
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 200")
    raw.close()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_an_early_failure_has_its_status(tokenizer: Tokenizer, stream: bool, many: bool) -> None:
    error = ErrorInfo(status=422, message="no such thing", code="odd", pointer="/a/b")
    with serving(tokenizer, script=lambda request: error) as toy:
        body = {"prompt": ["a", "b"] if many else "a", "stream": stream}
        response = toy.post("/v1/completions", body)
        assert response.status_code == 422
        got = error_of(response.content)
        assert (got["message"], got["code"]) == ("no such thing", "odd")
        assert got["pointer"] == "/a/b"
        assert not toy.service.active


def test_a_late_failure_is_an_event(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, fail_after=3) as toy:
        body = {"prompt": ["abcdef", "ghijkl"], "max_tokens": 9}
        with toy.stream("/v1/completions", {**body, "stream": True}) as lines:
            *_, failure, done = lines
        assert done == "data: [DONE]"
        assert error_of(failure.removeprefix("data: ").encode())["code"] == "toy_error"
        whole = toy.post("/v1/completions", body)
        assert whole.status_code == 500
        assert error_of(whole.content)["message"] == "the toy broke"
        until(lambda: not toy.engine.running)


def test_a_timeout_ends_the_request(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, ServerSettings(request_timeout=0.1), delay=0.01) as toy:
        body = generate_body()
        response = toy.post("/generate", body)
        assert response.status_code == 504
        assert error_of(response.content)["code"] == "timeout"
        with toy.stream("/generate", {**body, "stream": True}) as lines:
            *_, failure, done = lines
        assert error_of(failure.removeprefix("data: ").encode())["code"] == "timeout"
        assert done == "data: [DONE]"
        until(lambda: not toy.engine.running and not toy.service.active)


def test_a_dead_engine_is_told(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, delay=0.01) as toy:
        with toy.stream("/generate", generate_body(stream=True)) as lines:
            next(lines)
            toy.engine.die()
            *_, failure, done = lines
        assert error_of(failure.removeprefix("data: ").encode())["code"] == "engine_dead"
        assert done == "data: [DONE]"
        for path in ("/generate", "/v1/completions"):
            response = toy.post(path, {"text": "a", "prompt": "a"})
            assert response.status_code == 503
            assert error_of(response.content)["code"] == "engine_dead"
        assert toy.get("/health").status_code == 503
        assert toy.get("/metrics").status_code == 503


def test_an_overloaded_engine_asks_to_come_again(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, delay=0.01, max_requests=2) as toy:
        raws = [post_raw(toy, "/generate", generate_body()) for _ in range(2)]
        until(lambda: len(toy.engine.running) == 2)
        response = toy.post("/generate", {"text": "a"})
        assert response.status_code == 503
        assert error_of(response.content)["code"] == "overloaded"
        assert int(response.headers["retry-after"]) > 0
        assert toy.get("/health").status_code == 200
        for raw in raws:
            raw.close()
