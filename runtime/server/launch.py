"""Run the application until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from math import ceil
from typing import Protocol

import uvicorn
import uvloop

from phloem.runtime.client import Client
from phloem.runtime.errors import EngineDeadError
from phloem.runtime.server.app import create_app
from phloem.runtime.server.service import Service
from phloem.runtime.server.settings import ServerSettings

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")

KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep idle connections, so that none is closed under a new request."""

ABORT_SECONDS = 5
"""What aborted requests get to send their ends; then their connections are cut."""


class OwnedClient(Client, Protocol):
    """A client with an engine of its own."""

    def close(self) -> None:
        """Stop the engine."""


def serve(client_factory: Callable[[], OwnedClient], settings: ServerSettings) -> int:
    """Serve until SIGINT or SIGTERM; the process's exit code, 0.

    After the signal no connection is accepted, running requests get ``shutdown_grace`` seconds,
    and those still running then end with the reason ``abort``. A second signal ends at once.

    Raises:
        OSError: the address cannot be listened on, found out before the model is loaded.
        ModelError: the engine could not start.
    """
    if settings.api_key is None and settings.host not in LOOPBACK:
        logger.warning("listening on %s without an API key: anyone may use it", settings.host)
    with (
        listener(settings) as listening,
        closing(client_factory()) as client,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(Server(client, settings).serve([listening]))
    return 0


def listener(settings: ServerSettings) -> socket.socket:
    """A bound socket; it refuses connections until the server listens."""
    address = (settings.host, settings.port)
    family, kind, proto, _, where = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, proto)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"cannot listen on {address[0]}:{address[1]}: {error}") from None
    return bound


class Server(uvicorn.Server):
    """uvicorn with a shutdown that ends requests through the engine, not by cutting them."""

    def __init__(self, client: Client, settings: ServerSettings) -> None:
        app = create_app(client, settings)
        self._service: Service = app.state.service
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                access_log=settings.access_log,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=ceil(settings.shutdown_grace) + ABORT_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, does not raise the signal again: a stop on demand is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Begin to shut down; the second call does not wait for running requests."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._ending = asyncio.get_running_loop().create_task(self._abort_after_grace())

    async def _abort_after_grace(self) -> None:
        await asyncio.sleep(self._service.settings.shutdown_grace)
        with suppress(EngineDeadError):
            await self._service.abort(None)
