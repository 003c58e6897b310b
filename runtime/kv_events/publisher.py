"""Event batches on a ZeroMQ socket, numbered, the last of them to be had again.

Subscribers get ``[topic, number, batch]``: the number in 8 bytes, big-endian, the batch in
msgpack. Whoever missed some sends the first number that it wants to the replay socket (ROUTER)
and gets ``[b"", number, batch]`` for each one since that is still kept, then number -1. It reads
one replay before it asks for another: one that does not gets no -1.

What waits for a subscriber that does not read is bounded: it misses what is beyond that.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable

import msgspec
import zmq

from phloem.runtime.errors import ModelError
from phloem.runtime.kv_events.events import Event, EventBatch

logger = logging.getLogger(__name__)

KEPT = 10_000
"""Batches for replay; as many wait for a subscriber, and two whole replays for a client."""

POLL_SECONDS = 0.05
"""How long a replay may wait while nothing is published."""

LAST = -1


class EventPublisher:
    """Publishes from a thread of its own, so that no step waits for a subscriber."""

    def __init__(self, endpoint: str, replay_endpoint: str | None = None, topic: str = "") -> None:
        """Bind the sockets.

        Raises:
            ModelError: an address cannot be bound.
        """
        self._topic = topic.encode()
        self._context = zmq.Context()
        self._publish = self._bind(zmq.PUB, endpoint, KEPT)
        self._replay = None
        if replay_endpoint is not None:
            self._replay = self._bind(zmq.ROUTER, replay_endpoint, 2 * (KEPT + 1))
            self._replay.router_mandatory = True  # full is an error, not a gap that nobody sees
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._queue: queue.SimpleQueue[EventBatch | None] = queue.SimpleQueue()
        self._encoder = msgspec.msgpack.Encoder()
        self._thread = threading.Thread(target=self._run, name="phloem-kv-events", daemon=True)
        self._thread.start()

    def publish(self, events: list[Event]) -> None:
        """Send a batch of events soon."""
        self._queue.put(EventBatch(time.time(), events))

    def close(self) -> None:
        """Send what was published and unbind."""
        self._queue.put(None)
        self._thread.join()
        self._context.destroy(linger=0)

    def _bind(self, kind: int, endpoint: str, most_waiting: int) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.sndhwm = most_waiting
        socket.sndtimeo = 0
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise ModelError(f"kv_events: {endpoint} cannot be bound: {error}") from None
        return socket

    # In the thread

    def _run(self) -> None:
        number = 0
        while True:
            try:
                batch = self._queue.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._answer_replays()
                continue
            if batch is None:
                return
            self._send(number, self._encoder.encode(batch))
            self._answer_replays()
            number += 1

    def _send(self, number: int, payload: bytes) -> None:
        self._kept.append((number, payload))
        self._publish.send_multipart((self._topic, as_bytes(number), payload))

    def _answer_replays(self) -> None:
        while self._replay is not None and self._replay.poll(0):
            client, *frames = self._replay.recv_multipart()
            if len(frames) != 2 or len(frames[1]) != 8:
                logger.debug("a request for replay is no number of 8 bytes")
                continue
            first = int.from_bytes(frames[1], "big")
            self._answer(client, (each for each in self._kept if each[0] >= first))

    def _answer(self, client: bytes, batches: Iterable[tuple[int, bytes]]) -> None:
        assert self._replay is not None
        try:
            for number, payload in (*batches, (LAST, b"")):
                self._replay.send_multipart((client, b"", as_bytes(number), payload))
        except zmq.ZMQError as error:
            logger.debug("a client takes no more of its replay: %s", error)


def as_bytes(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)
