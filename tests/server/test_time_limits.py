"""Requests whose time is over, in the queue or by their own limit, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Serving, serving_client

from phloem.runtime.config import EngineConfig
from phloem.runtime.in_process import local_client

NO_TIME = 1e-9
ROUTES = {
    "/generate": {"text": "a", "sampling_params": {"max_new_tokens": 4}},
    "/v1/completions": {"prompt": ["a", "b"], "max_tokens": 4},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4},
}


@pytest.fixture(scope="module")
def tiny(tiny_model: Path) -> Iterator[Serving]:
    yield from served(tiny_model)


@pytest.fixture(scope="module")
def impatient(tiny_model: Path) -> Iterator[Serving]:
    """No request can start in the time that it may wait."""
    yield from served(tiny_model, queue_timeout=NO_TIME)


def served(model: Path, **options: Any) -> Iterator[Serving]:
    config = EngineConfig(model=str(model), dtype="float32", kv_tokens=4096, threads=1, **options)
    client = local_client(config)
    with serving_client(client) as made:
        yield made
    client.close()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_queue_that_is_too_slow_answers_503_and_when_to_come_back(
    impatient: Serving, route: str, stream: bool
) -> None:
    response = impatient.post(route, {**ROUTES[route], "stream": stream})
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["error"]["code"] == "overloaded"
    assert "queue_timeout" in response.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_timeout_that_has_passed_answers_504(tiny: Serving, route: str, stream: bool) -> None:
    response = tiny.post(route, {**ROUTES[route], "stream": stream, "timeout": NO_TIME})
    assert response.status_code == 504
    assert response.json()["error"]["type"] == "timeout_error"
    assert tiny.post(route, {**ROUTES[route], "timeout": 60}).status_code == 200


@pytest.mark.parametrize("value", [0, -1, "1"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_timeout_must_be_a_number_above_zero(tiny: Serving, route: str, value: Any) -> None:
    response = tiny.post(route, {**ROUTES[route], "timeout": value})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "timeout"
