"""Opening, finding and closing sessions."""

from __future__ import annotations

import pytest
from session_tools import Clock, say

from phloem.runtime.errors import OverloadedError, RequestError
from phloem.runtime.sessions import Sessions


def test_open_find_close() -> None:
    book = Sessions()
    session = book.open("mine", capacity=5, timeout=7)
    assert (session.id, session.capacity, session.timeout) == ("mine", 5, 7)
    assert book.find("mine") is session
    assert book.close("mine")
    assert not book.close("mine")
    with pytest.raises(RequestError, match="`session_id` 'mine' is no open session") as refused:
        book.find("mine")
    assert (refused.value.param, refused.value.code) == ("session_id", "unknown_session")
    assert book.open("mine") is not session


def test_ids_are_made_and_differ() -> None:
    book = Sessions()
    first, second = book.open(), book.open()
    assert first.id != second.id
    assert book.find(first.id) is first
    assert first.timeout == 600


@pytest.mark.parametrize("session_id", ["", "x" * 257])
def test_an_id_is_a_label(session_id: str) -> None:
    with pytest.raises(RequestError, match="`session_id` must have 1 to 256"):
        Sessions().open(session_id)


def test_an_id_is_open_once() -> None:
    book = Sessions()
    book.open("mine")
    with pytest.raises(RequestError, match="'mine' is open already") as refused:
        book.open("mine")
    assert refused.value.code == "duplicate_session"


def test_idle_ones_expire() -> None:
    clock = Clock()
    book = Sessions(clock=clock)
    book.open("short", timeout=10)
    busy = book.open("busy", timeout=10)
    book.open("long", timeout=60)
    with busy.running(busy.resume(), "a", 1):
        clock.now += 10
        assert len(book) == 2
        for gone in ("short", "never"):
            with pytest.raises(RequestError, match="idle for longer"):
                book.find(gone)
        assert book.find("busy") is busy
    assert not book.close("short")
    book.open("short")
    clock.now += 50
    assert len(book) == 1


def test_so_many_may_be_open() -> None:
    clock = Clock()
    book = Sessions(max_sessions=2, clock=clock)
    book.open("a", timeout=10)
    book.open("b", timeout=20)
    with pytest.raises(OverloadedError, match="2 sessions are open"):
        book.open("c")
    clock.now += 10
    book.open("c")
    assert len(book) == 2


def test_all_together_have_so_many_turns() -> None:
    book = Sessions(max_turns=2)
    say(book.open("a").resume(), "1", [1])
    say(book.open("b").resume(), "1", [1])
    with pytest.raises(OverloadedError, match="2 turns"):
        book.find("a")


def test_all_together_hold_so_many_tokens() -> None:
    book = Sessions(max_tokens=6)
    say(book.open("a").resume(), "1", [1, 2], [3])
    full = book.find("a")
    say(book.open("b").resume(), "1", [1, 2, 3])
    for name in "ab":
        with pytest.raises(OverloadedError, match="6 tokens"):
            book.find(name)
    assert book.close("b")
    assert book.find("a") is full
