"""Programs on a server: the real HTTP application over the scripted model."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

import phloem as ph
from phloem.frontend_lang.backends.transport import events
from phloem.runtime.server.app import create_app
from phloem.runtime.server.settings import ServerSettings

SAID = ' a "quoted" answer'
CUES = {
    "A:": SAID,
    "B:": ["one", "two"],
    "C:": ph.GenerationError("the pool burst"),
    "D:": " yes",
}


class Served:
    """A server in a thread of its own, on a free port."""

    def __init__(self, client, settings: ServerSettings) -> None:
        self.client = client
        config = uvicorn.Config(create_app(client, settings), port=0, log_level="critical")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture
def served(scripted) -> Iterator[Served]:
    served = Served(scripted(CUES), ServerSettings(api_key="secret"))
    yield served
    served.stop()


@pytest.fixture
def endpoint(served):
    return ph.RuntimeEndpoint(served.url, api_key="secret", cache_salt="tenant")


@ph.function
def program(s):
    s += ph.user("hello") + ph.assistant_begin()
    s += "A:" + ph.gen("first", temperature=0, seed=3, logit_bias={1: -5.0})
    s += " B:" + ph.gen("second", n=2, return_logprob=True, top_logprobs_num=2)
    s += " D:" + ph.select("third", [" no", " yes"])
    s += " number A:" + ph.gen("fourth", regex=" [0-9]{2}")


@pytest.mark.parametrize("stream", [False, True])
def test_a_program_does_the_same_as_on_the_engine(served, endpoint, scripted, stream):
    remote = program.run(backend=endpoint, stream=stream)
    local = program.run(backend=scripted(CUES), stream=stream)
    assert remote.text() == local.text()
    assert "".join(remote.text_iter()) == remote.text()
    assert "".join(remote.text_iter("first")) == SAID
    for name in ("first", "second", "third", "fourth"):
        assert remote[name] == local[name]
    assert remote["second"] == ["one", "two"]
    ours, theirs = local.get_meta_info("second"), remote.get_meta_info("second")
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["finish_reason"] == other["finish_reason"]
        pairs = zip(mine["output_token_logprobs"], other["output_token_logprobs"], strict=True)
        assert all(list(a) == b for a, b in pairs)
    request = served.client.requests[0]
    assert request.cache_salt == "tenant" and request.program
    assert request.sampling.seed == 3 and request.sampling.logit_bias == {1: -5.0}
    assert local.get_meta_info("third") == remote.get_meta_info("third")


@pytest.mark.parametrize("stream", [False, True])
def test_refusals_and_failures_are_the_engines(endpoint, stream):
    @ph.function
    def refused(s):
        s += "A:" + ph.gen("x", top_p=7.0)

    @ph.function
    def failing(s):
        s += "C:" + ph.gen("x")

    with pytest.raises(ph.RequestError, match="top_p") as caught:
        refused.run(backend=endpoint, stream=stream)["x"]
    assert "top_p" in caught.value.param
    with pytest.raises(ph.GenerationError):
        failing.run(backend=endpoint, stream=stream)["x"]


def test_a_program_may_begin_with_the_model(endpoint):
    @ph.function
    def begins(s):
        s += ph.gen("x", max_tokens=4) + ph.select("y", ["a", "b"])

    state = begins.run(backend=endpoint)
    assert state["x"] == ""
    assert state["y"] in ("a", "b")


async def test_events_end_at_blank_lines_alone_however_they_are_cut():
    texts = ["line\u2028break\x85 and 漢字 😀", "", "data: x"]
    wire = b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)

    async def cut(size):
        for start in range(0, len(wire), size):
            yield wire[start : start + size]

    for size in (1, 2, 7, len(wire)):
        assert [data.decode() async for data in events(cut(size))] == texts


def test_a_wrong_key_is_refused(served):
    with pytest.raises(ph.RequestError, match="key"):
        program.run(backend=ph.RuntimeEndpoint(served.url))["first"]


def test_a_server_that_is_not_there_is_a_dead_engine(served):
    served.stop()
    with pytest.raises(ph.EngineDeadError, match=r"127\.0\.0\.1"):
        program.run(backend=ph.RuntimeEndpoint(served.url))["first"]


def test_a_server_that_does_not_answer_in_time_is_not_waited_for(served, endpoint):
    def stuck(text, index):
        time.sleep(0.5)
        return ""

    served.client._reply = stuck
    with pytest.raises(ph.GenerationError, match=r"within 0\.1 s"):
        program.run(backend=ph.RuntimeEndpoint(served.url, "secret", timeout=0.1))["first"]


@pytest.mark.parametrize("url", ["", "localhost:1", "ftp://x"])
def test_only_http_addresses_are_endpoints(url):
    with pytest.raises(ph.RequestError):
        ph.RuntimeEndpoint(url)


def test_the_cache_is_flushed_over_http(served, endpoint):
    assert ph.flush_cache(endpoint)
    assert served.client.flushed == 1


def test_leaving_a_program_ends_its_requests(served, endpoint):
    started = threading.Event()

    def endless(text, index):
        started.set()
        time.sleep(0.005)  # or it would end by itself before a busy machine notices
        return "a" * (1 + len(text) % 2)

    @ph.function
    def leaves(s):
        s += "A:" + ph.gen("x", max_tokens=4000)
        started.wait(10)
        raise ZeroDivisionError

    served.client._reply = endless
    with pytest.raises(ZeroDivisionError):
        leaves.run(backend=endpoint)
    for _ in range(750):
        if served.client.aborted:
            break
        time.sleep(0.02)
    assert served.client.aborted
