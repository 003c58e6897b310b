"""An engine in this process: its loop in a thread, behind the client protocol."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from phloem.runtime.bootstrap import build
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine import EngineCore
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.loop import run
from phloem.runtime.wire import Command, Dead, Reply, Shutdown

logger = logging.getLogger(__name__)


class ThreadLink:
    """The engine's end: commands from a queue, replies by a call into the client."""

    def __init__(
        self, commands: queue.SimpleQueue[Command], receive: Callable[[Reply], None]
    ) -> None:
        self._commands = commands
        self.send = receive

    def receive(self, timeout: float) -> Sequence[Command]:
        commands: list[Command] = []
        try:
            commands.append(self._commands.get(block=timeout > 0, timeout=timeout or None))
            while True:
                commands.append(self._commands.get_nowait())
        except queue.Empty:
            return commands


class ThreadConnection:
    """The client's end of a connection to a core whose loop runs in a thread."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, receive: Callable[[Reply], None]) -> None:
        link = ThreadLink(self._commands, receive)
        self._thread = threading.Thread(
            target=self._run, args=(link,), name="phloem-engine", daemon=True
        )
        self._thread.start()

    def _run(self, link: ThreadLink) -> None:
        try:
            run(self._core, link)
            link.send(Dead("the engine was shut down"))
        except Exception as error:
            logger.exception("the engine's loop failed")
            link.send(Dead(f"the engine's loop failed: {error}"))

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def close(self) -> None:
        self.send(Shutdown())
        if self._thread is not None:
            self._thread.join()


def local_client(config: EngineConfig) -> EngineClient:
    """Load the model and start an engine in this process.

    Raises:
        ModelError: see ``bootstrap.build``.
    """
    loaded = build(config)
    capacity = config.max_running + config.max_waiting
    return EngineClient(ThreadConnection(loaded.core), loaded.info, loaded.tokenizer, capacity)
