"""Two ZeroMQ ipc sockets carrying msgpack between the HTTP process and the engine process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import zmq

from phloem.runtime.wire import Command, Reply

Socket = zmq.Socket[bytes]


def addresses(folder: str) -> tuple[str, str]:
    """The sockets for commands and for replies, in a folder that only the user may enter."""
    return f"ipc://{folder}/commands", f"ipc://{folder}/replies"


def make_socket(context: zmq.Context[Any], kind: int) -> Socket:
    """A socket without a queue limit: ends of work must not be lost; work itself is bounded."""
    socket: Socket = context.socket(kind)
    socket.set_hwm(0)
    socket.linger = 0
    return socket


class EngineLink:
    """The engine's end: runtime.loop.Link over sockets."""

    def __init__(self, folder: str) -> None:
        self._context = zmq.Context()
        commands, replies = addresses(folder)
        self._commands = make_socket(self._context, zmq.PULL)
        self._commands.connect(commands)
        self._replies = make_socket(self._context, zmq.PUSH)
        # The last reply may be sent just before the process ends.
        self._replies.linger = 1000
        self._replies.connect(replies)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Command)

    def receive(self, timeout: float) -> Sequence[Command]:
        commands: list[Command] = []
        if timeout and not self._commands.poll(int(timeout * 1000)):
            return commands
        try:
            while True:
                commands.append(self._decoder.decode(self._commands.recv(zmq.NOBLOCK)))
        except zmq.Again:
            return commands

    def send(self, reply: Reply) -> None:
        self._replies.send(self._encoder.encode(reply))

    def close(self) -> None:
        self._commands.close()
        self._replies.close()
        self._context.term()
