"""Numbered batches arrive in vLLM's shape, and can be had again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest
import zmq

from phloem.runtime.errors import ModelError
from phloem.runtime.kv_events.events import AllBlocksCleared, BlockRemoved, BlockStored
from phloem.runtime.kv_events.publisher import KEPT, EventPublisher

STORED = BlockStored([1, 2], None, list(range(32)), 16, medium="GPU")
REMOVED = BlockRemoved([2**64 - 1])


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


def connect(context: zmq.Context[zmq.Socket[bytes]], kind: int, address: str) -> zmq.Socket[bytes]:
    socket: zmq.Socket[bytes] = context.socket(kind)
    socket.rcvtimeo = 10_000
    if kind == zmq.SUB:
        socket.subscribe(b"kv")
    socket.connect(address)
    return socket


@pytest.fixture
def addresses(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("kv")
    return f"ipc://{folder}/events", f"ipc://{folder}/replay"


@pytest.fixture
def publisher(addresses: tuple[str, str]) -> Iterator[EventPublisher]:
    publisher = EventPublisher(*addresses, topic="kv")
    yield publisher
    publisher.close()


def number(frame: bytes) -> int:
    return int.from_bytes(frame, "big", signed=True)


def test_batches_are_plain_arrays(
    context: zmq.Context[zmq.Socket[bytes]],
    addresses: tuple[str, str],
    publisher: EventPublisher,
) -> None:
    subscriber = connect(context, zmq.SUB, addresses[0])
    received: list[list[bytes]] = []
    while not received:  # a subscription takes a moment to arrive
        publisher.publish([STORED, REMOVED, AllBlocksCleared()])
        if subscriber.poll(20):
            received.append(subscriber.recv_multipart())
    topic, _, payload = received[0]
    seconds, events = msgspec.msgpack.decode(payload)
    assert topic == b"kv"
    assert seconds > 1.7e9
    assert events == [
        ["BlockStored", [1, 2], None, list(range(32)), 16, None, "GPU"],
        ["BlockRemoved", [2**64 - 1], None],
        ["AllBlocksCleared"],
    ]


def test_what_was_missed_can_be_had_again(
    context: zmq.Context[zmq.Socket[bytes]],
    addresses: tuple[str, str],
    publisher: EventPublisher,
) -> None:
    for _ in range(5):
        publisher.publish([REMOVED])
    client = connect(context, zmq.DEALER, addresses[1])
    client.send_multipart((b"", b"no number"))
    numbers: list[int] = []
    while numbers[:-1] != [3, 4]:  # all five were sent when they come
        client.send_multipart((b"", (3).to_bytes(8, "big")))
        numbers.clear()
        while not numbers or numbers[-1] != -1:
            _, frame, payload = client.recv_multipart()
            numbers.append(number(frame))
            assert numbers[-1] == -1 or msgspec.msgpack.decode(payload)[1][0][0] == "BlockRemoved"


def test_a_slow_reader_gets_all_that_is_kept(
    context: zmq.Context[zmq.Socket[bytes]],
    addresses: tuple[str, str],
    publisher: EventPublisher,
) -> None:
    for _ in range(KEPT):
        publisher.publish([REMOVED])
    client = connect(context, zmq.DEALER, addresses[1])
    numbers: list[int] = []
    while len(numbers) < KEPT + 1:  # the last ones may still be on their way
        numbers.clear()
        client.send_multipart((b"", bytes(8)))
        time.sleep(0.3)
        while not numbers or numbers[-1] != -1:
            numbers.append(number(client.recv_multipart()[1]))
    assert numbers == [*range(KEPT), -1]


def test_an_address_that_cannot_be_bound_is_named() -> None:
    with pytest.raises(ModelError, match="tcp://256"):
        EventPublisher("tcp://256.1.1.1:1")


def test_who_asks_again_without_reading_gets_no_end(
    context: zmq.Context[zmq.Socket[bytes]],
    addresses: tuple[str, str],
    publisher: EventPublisher,
) -> None:
    for _ in range(KEPT):
        publisher.publish([REMOVED])
    greedy = connect(context, zmq.DEALER, addresses[1])
    greedy.rcvhwm = 10
    for _ in range(20):
        greedy.send_multipart((b"", bytes(8)))
    time.sleep(0.5)
    greedy.rcvtimeo = 500
    received = 0
    try:
        while True:
            greedy.recv_multipart()
            received += 1
    except zmq.Again:
        pass
    assert received < 10 * KEPT
    other = connect(context, zmq.DEALER, addresses[1])
    other.send_multipart((b"", (KEPT - 1).to_bytes(8, "big")))
    assert number(other.recv_multipart()[1]) == KEPT - 1
