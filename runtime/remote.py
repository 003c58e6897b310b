"""An engine in a process of its own, behind the client protocol."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable

import msgspec
import zmq

from phloem.runtime.config import EngineConfig
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.errors import EngineDeadError, ModelError
from phloem.runtime.protocol import ModelInfo
from phloem.runtime.sockets import addresses, make_socket
from phloem.runtime.store import resolve
from phloem.runtime.text import load_tokenizer
from phloem.runtime.wire import Command, Dead, Ready, Reply, Shutdown

LIFE_POLL_MS = 200
"""Time between looks at whether the engine process still lives."""

SEND_TIMEOUT_MS = 1000
"""Without a peer a socket would wait for ever; a peer that lives is there at once."""

SHUTDOWN_SECONDS = 10.0


class ProcessConnection:
    """The client's end of a connection to an engine process that it started."""

    def __init__(self, config: EngineConfig) -> None:
        self._folder = tempfile.mkdtemp(prefix="phloem-")
        commands, replies = addresses(self._folder)
        self._context = zmq.Context()
        self._commands = make_socket(self._context, zmq.PUSH)
        self._commands.sndtimeo = SEND_TIMEOUT_MS
        self._commands.bind(commands)
        self._replies = make_socket(self._context, zmq.PULL)
        self._replies.bind(replies)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Reply)
        self._send_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "phloem.runtime.worker",
                self._folder,
                msgspec.json.encode(config).decode(),
            ]
        )

    def wait_ready(self) -> ModelInfo:
        """Wait until the model is loaded.

        Raises:
            ModelError: the engine could not start; the message is its own.
        """
        reply = self._next()
        if isinstance(reply, Ready):
            return reply.info
        self.close()
        raise ModelError(reply.message if isinstance(reply, Dead) else f"unexpected {reply}")

    def start(self, receive: Callable[[Reply], None]) -> None:
        self._thread = threading.Thread(
            target=self._pump, args=(receive,), name="phloem-replies", daemon=True
        )
        self._thread.start()

    def _pump(self, receive: Callable[[Reply], None]) -> None:
        while True:
            reply = self._next()
            receive(reply)
            if isinstance(reply, Dead):
                return

    def _next(self) -> Reply:
        """The next reply; Dead if the process ended without one."""
        while True:
            if self._replies.poll(LIFE_POLL_MS):
                return self._decoder.decode(self._replies.recv())
            # Looked at after the poll: a reply sent before the end is not missed.
            code = self._process.poll()
            if code is not None and not self._replies.poll(0):
                return Dead(f"the engine process ended (exit code {code})")

    def send(self, command: Command) -> None:
        message = self._encoder.encode(command)
        with self._send_lock:
            if self._commands.closed:
                raise EngineDeadError("the engine was shut down")
            try:
                self._commands.send(message)
            except zmq.Again:
                raise EngineDeadError("the engine process takes no commands") from None

    def close(self) -> None:
        """End the process, by force if it does not end in time; safe to call twice."""
        if self._commands.closed:
            return
        try:
            self.send(Shutdown())
            self._process.wait(SHUTDOWN_SECONDS)
        except (EngineDeadError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        if self._thread is not None:
            self._thread.join()
        with self._send_lock:
            self._commands.close()
        self._replies.close()
        self._context.term()
        shutil.rmtree(self._folder, ignore_errors=True)


def remote_client(config: EngineConfig) -> EngineClient:
    """Start an engine process and wait until it is ready.

    Raises:
        ModelError: the model cannot be found, read or run.
    """
    # Fetched here, so that progress and errors show before a process is started.
    files = resolve(config.model)
    connection = ProcessConnection(config)
    try:
        tokenizer = load_tokenizer(files)
        info = connection.wait_ready()
    except BaseException:
        connection.close()
        raise
    capacity = config.max_running + config.max_waiting
    return EngineClient(connection, info, tokenizer, capacity)
