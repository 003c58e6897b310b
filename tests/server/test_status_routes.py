"""Routes about the server, its keys and its metrics."""

from __future__ import annotations

import re

import httpx
import pytest
from conftest import Serving, serving
from sse_reader import error_of

from phloem.runtime.server import ServerSettings
from phloem.runtime.text.tokenizer import Tokenizer

KEY = "sécret-key"


def test_models(toy: Serving) -> None:
    [model] = toy.get("/v1/models").json()["data"]
    assert model["id"] == "toy"
    assert model["max_model_len"] == 2048
    assert toy.get("/v1/models/toy").json() == model
    missing = toy.get("/v1/models/org/other")
    assert missing.status_code == 404
    assert "org/other" in error_of(missing.content)["message"]


def test_what_sglang_tools_read(toy: Serving) -> None:
    for path in ("/model_info", "/get_model_info"):
        info = toy.get(path).json()
        assert info["model_path"] == "/models/toy"
        assert info["is_generation"] is True
        assert "im_start" in info["chat_template"]
        assert info["context_length"] == 2048
    for path in ("/server_info", "/get_server_info"):
        info = toy.get(path).json()
        assert "running" in info["internal_states"][0]
        assert info["settings"]["max_batch"] == 1024
        assert "api_key" not in info["settings"]
    assert toy.get("/version").json()["version"]


def test_health(toy: Serving) -> None:
    assert toy.get("/health").status_code == 200
    assert toy.http.head("/health").status_code == 200
    assert toy.get("/health_generate").status_code == 200


def test_health_answers_while_a_request_waits(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, delay=0.05) as toy:
        body = {"text": "a", "stream": True, "sampling_params": {"ignore_eos": True}}
        with toy.stream("/generate", body) as lines:
            next(lines)
            assert httpx.get(toy.url + "/health").status_code == 200
            busy = httpx.post(toy.url + "/flush_cache")
            assert busy.status_code == 409
            assert error_of(busy.content)["code"] == "busy"


def test_flush_cache(toy: Serving) -> None:
    assert toy.http.post("/flush_cache").json() == {"flushed": True}


def test_tokenize_and_back(toy: Serving, tokenizer: Tokenizer) -> None:
    text = "The tissue 漢字 😀"
    for path in ("/tokenize", "/v1/tokenize"):
        got = toy.post(path, {"prompt": text}).json()
        assert got["tokens"] == tokenizer.encode(text)
        assert got["count"] == len(got["tokens"])
    several = toy.post("/tokenize", {"prompt": [text, "b"]}).json()
    assert several["count"] == [len(ids) for ids in several["tokens"]]
    for path in ("/detokenize", "/v1/detokenize"):
        assert toy.post(path, {"tokens": got["tokens"]}).json() == {"text": text}
    assert toy.post("/detokenize", {"tokens": several["tokens"]}).json()["text"] == [text, "b"]
    assert toy.post("/detokenize", {"tokens": []}).json() == {"text": ""}
    special = {"tokens": [1], "skip_special_tokens": False}
    assert toy.post("/detokenize", special).json() == {"text": "<|im_start|>"}


@pytest.mark.parametrize("tokens", [[-1], [400], [[5], [10**12]], [[5], 6], "text", None])
def test_bad_tokens_are_refused(toy: Serving, tokens: object) -> None:
    response = toy.post("/detokenize", {"tokens": tokens})
    assert response.status_code == 400
    assert "tokens" in error_of(response.content)["param"]


def test_abort_needs_to_know_what(toy: Serving) -> None:
    assert error_of(toy.post("/abort_request", {}).content)["param"] == "rid"
    assert toy.post("/abort_request", {"rid": "unknown"}).json() == {"aborted": 0}


def test_long_texts_do_not_stall_the_loop(toy: Serving, tokenizer: Tokenizer) -> None:
    long = "words and more " * 4_000
    got = toy.post("/tokenize", {"prompt": long}).json()
    assert got["tokens"] == tokenizer.encode(long)


def test_openapi_describes_the_bodies(toy: Serving) -> None:
    document = toy.get("/openapi.json").json()
    bodies = re.findall(r"#/components/schemas/(\w+)", toy.get("/openapi.json").text)
    assert set(bodies) <= document["components"]["schemas"].keys()
    body = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"]["$ref"].endswith("ChatRequest")
    assert "messages" in document["components"]["schemas"]["ChatRequest"]["properties"]


def metric(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def test_metrics(tokenizer: Tokenizer) -> None:
    with serving(tokenizer) as toy:
        assert metric(toy.get("/metrics").text, "phloem_inter_token_latency_seconds_count") == 0
        body = {"text": ["ab", "cd"], "sampling_params": {"max_new_tokens": 5, "ignore_eos": True}}
        toy.post("/generate", body)
        toy.post("/generate", {"text": "<|im_end|>"})
        response = toy.get("/metrics")
        text = response.text
        assert response.headers["content-type"].startswith("text/plain; version=")
        assert metric(text, 'phloem_requests_total{finish_reason="length"}') == 2
        assert metric(text, 'phloem_requests_total{finish_reason="stop"}') == 1
        assert metric(text, "phloem_time_to_first_token_seconds_count") == 3
        assert metric(text, 'phloem_time_to_first_token_seconds_bucket{le="+Inf"}') == 3
        assert metric(text, "phloem_inter_token_latency_seconds_count") == 8
        assert metric(text, "phloem_e2e_request_latency_seconds_count") == 3
        assert metric(text, "phloem_steps_total") > 0
        assert metric(text, "phloem_running") == 0
        assert metric(text, 'phloem_pages{state="free"}') == 0
        assert toy.http.head("/metrics").status_code == 200


def test_two_apps_have_their_own_metrics(tokenizer: Tokenizer) -> None:
    with serving(tokenizer) as one, serving(tokenizer) as two:
        one.post("/generate", {"text": "a"})
        assert 'finish_reason="length"' in one.get("/metrics").text
        assert 'finish_reason="length"' not in two.get("/metrics").text


@pytest.fixture(scope="module")
def locked(tokenizer: Tokenizer):
    with serving(tokenizer, ServerSettings(api_key=KEY)) as made:
        yield made


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/docs", "/openapi.json", "/nothing"])
def test_every_route_asks_for_the_key(locked: Serving, path: str) -> None:
    refused = locked.get(path)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert error_of(refused.content)["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}".encode()},
        {"authorization": f"bearer  {KEY}".encode()},
        {"x-api-key": KEY.encode()},
    ],
)
def test_the_key_opens(locked: Serving, headers: dict[str, bytes]) -> None:
    assert locked.get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Basic {KEY}".encode()},
        {"authorization": b"Bearer"},
        {"authorization": b"Bearer wrong"},
        {"authorization": KEY.encode()},
        {"x-api-key": b"\xff\xfe"},
        {},
    ],
)
def test_a_wrong_key_does_not(locked: Serving, headers: dict[str, bytes]) -> None:
    assert locked.http.post("/flush_cache", headers=headers).status_code == 401


def test_health_is_open(locked: Serving) -> None:
    assert locked.get("/health").status_code == 200
