"""Reading a program while it runs."""

from __future__ import annotations

import asyncio
import threading

import pytest

import phloem as ph

LONG = " and so on" * 10


@ph.function
def story(s, gate=None):
    s += "begin "
    s += "A:" + ph.gen("first")
    if gate is not None:
        gate.wait(10)
    s += " B:" + ph.gen("second")
    s += " end " + ph.select("third", ["x", "y"])


@pytest.fixture
def client(scripted):
    return scripted({"A:": LONG, "B:": "two", "end ": "y"})


WHOLE = f"begin A:{LONG} B:two end y"


def test_the_whole_text_comes_in_pieces(client):
    state = story.run(backend=client, stream=True)
    pieces = list(state.text_iter())
    assert "".join(pieces) == WHOLE == state.text()
    assert len(pieces) > 10
    assert list(state.text_iter()) == pieces


def test_a_variable_streams_before_the_program_has_declared_the_next(client):
    gate = threading.Event()
    state = story.run(gate, backend=client, stream=True)
    first = state.text_iter("first")
    assert next(first) != ""
    gate.set()
    assert len(list(first)) > 10
    assert "".join(state.text_iter("second")) == "two"
    assert list(state.text_iter("third")) == ["y"]
    assert state["third"] == "y"


def test_without_streaming_texts_come_in_one_piece(client):
    state = story.run(backend=client)
    assert list(state.text_iter()) == [WHOLE]
    assert list(state.text_iter("first")) == [LONG]


async def test_reading_in_an_event_loop_does_not_stop_it(client):
    state = story.run(backend=client, stream=True)
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    whole = [piece async for piece in state.text_async_iter()]
    first = [piece async for piece in state.text_async_iter("first")]
    third = [piece async for piece in state.text_async_iter("third")]
    ticker.cancel()
    assert "".join(whole) == WHOLE and "".join(first) == LONG and third == ["y"]
    assert ticks > 1
    plain = story.run(backend=client)
    assert [piece async for piece in plain.text_async_iter()] == [WHOLE]
    assert [piece async for piece in plain.text_async_iter("first")] == [LONG]


async def test_a_reader_that_gives_up_leaves_the_others_alone(client):
    gate = threading.Event()
    state = story.run(gate, backend=client, stream=True)

    async def read(name):
        return "".join([piece async for piece in state.text_async_iter(name)])

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read("second"), 0.05)
    gate.set()
    assert await read("second") == "two"


def test_a_run_in_an_event_loop_blocks_only_for_its_values(client):
    async def main():
        return story.run(backend=client)["second"]

    assert asyncio.run(main()) == "two"


def test_forks_stream_as_well(client):
    @ph.function
    def program(s):
        s += "start "
        forks = s.fork(2)
        forks += "B:" + ph.gen("x")
        forks.join("concate_and_append")
        s["forks"] = forks

    state = program.run(backend=client, stream=True)
    assert "".join(state.text_iter()) == "start B:twoB:two"
    assert ["".join(fork.text_iter()) for fork in state["forks"]] == ["start B:two"] * 2


def test_a_failure_ends_the_streams_with_its_error(scripted):
    client = scripted({"A:": LONG, "B:": ph.GenerationError("gone")})
    state = story.run(backend=client, stream=True)
    assert "".join(state.text_iter("first")) == LONG
    for name in ("second", "third", None):
        with pytest.raises(ph.GenerationError, match="gone"):
            list(state.text_iter(name))


def test_what_the_function_raises_reaches_the_readers(scripted):
    @ph.function
    def program(s):
        s += "A:" + ph.gen("x")
        s["x"]
        raise ZeroDivisionError("a bug")

    state = program.run(backend=scripted({"A:": "1"}), stream=True)
    assert state["x"] == "1"
    with pytest.raises(ZeroDivisionError):
        list(state.text_iter())
    with pytest.raises(ZeroDivisionError):
        state["never"]
    assert isinstance(state.error(), ZeroDivisionError)


def test_a_streaming_function_that_reads_what_it_never_makes_does_not_wait_for_itself(scripted):
    @ph.function
    def program(s):
        s["never"]

    state = program.run(backend=scripted({"A:": ""}), stream=True)
    with pytest.raises(KeyError, match="'never'"):
        state["other"]
