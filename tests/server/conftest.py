from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from tiny import write_tokenizer
from toy_engine import ToyEngine

from phloem.runtime.engine_client import EngineClient
from phloem.runtime.protocol import ModelInfo
from phloem.runtime.server import ServerSettings, create_app
from phloem.runtime.server.service import Service
from phloem.runtime.text.folder import folder_tokenizer
from phloem.runtime.text.tokenizer import Tokenizer

CONTEXT = 2048


@dataclass
class Serving:
    """A server on a loopback port, with what stands behind it."""

    url: str
    client: EngineClient
    service: Service
    loop: asyncio.AbstractEventLoop
    http: httpx.Client
    engine: ToyEngine = field(init=False, repr=False)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    @contextmanager
    def stream(self, path: str, body: Any) -> Iterator[Iterator[str]]:
        """The lines of a streamed answer, as they come."""
        with self.http.stream("POST", path, json=body) as response:
            yield (line for line in response.iter_lines() if line)

    def tasks(self) -> int:
        """How many tasks the server's event loop holds."""
        count = asyncio.run_coroutine_threadsafe(self._count(), self.loop)
        return count.result(5)

    async def _count(self) -> int:
        return len(asyncio.all_tasks()) - 1


def toy_client(
    tokenizer: Tokenizer, max_requests: int = 256, **options: Any
) -> tuple[ToyEngine, EngineClient]:
    """A toy engine and the client in front of it; ``options`` are the engine's."""
    engine = ToyEngine(tokenizer, **options)
    info = ModelInfo(
        name="toy",
        path="/models/toy",
        architecture="echo",
        context_length=CONTEXT,
        max_request_tokens=CONTEXT,
        vocab_size=tokenizer.vocab_size,
        eos_token_ids=tokenizer.eos_token_ids,
        dtype="none",
        device="none",
    )
    return engine, EngineClient(engine, info, tokenizer, max_requests)


@contextmanager
def serving(
    tokenizer: Tokenizer, settings: ServerSettings | None = None, **options: Any
) -> Iterator[Serving]:
    """A server over a toy client; ``options`` as in ``toy_client``."""
    engine, client = toy_client(tokenizer, **options)
    with serving_client(client, settings) as served:
        served.engine = engine
        yield served
    client.close()


@contextmanager
def serving_client(
    client: EngineClient, settings: ServerSettings | None = None
) -> Iterator[Serving]:
    """A server in a thread over a client, which the caller closes."""
    app = create_app(client, settings)
    config = uvicorn.Config(app, port=0, log_level="warning", loop="uvloop", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    [listening] = server.servers[0].sockets
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    loop = server.servers[0].get_loop()
    try:
        with httpx.Client(base_url=url, timeout=20) as http:
            yield Serving(url, client, app.state.service, loop, http)
    finally:
        server.should_exit = True
        thread.join(10)


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for a condition, and fail if it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return folder_tokenizer(folder)


@pytest.fixture(scope="session")
def toy(tokenizer: Tokenizer) -> Iterator[Serving]:
    """One server for the tests that do not change it."""
    with serving(tokenizer) as made:
        yield made
