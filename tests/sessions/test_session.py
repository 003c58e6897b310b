"""Where turns go on, and what a session refuses."""

from __future__ import annotations

from typing import Any

import pytest
from session_tools import Clock, as_turn, history, say

from phloem.runtime.errors import RequestError
from phloem.runtime.sessions import Session


@pytest.fixture
def session() -> Session:
    """Two turns: 1 2 answered by 3 4, then 5 answered by 6."""
    made = Session("s")
    say(made.resume(), "a", [1, 2], [3, 4])
    say(made.resume(), "b", [5], [6])
    return made


def test_a_turn_goes_on_from_the_latest(session: Session) -> None:
    assert history(session) == history(session, "b") == [1, 2, 3, 4, 5, 6]
    assert say(session.resume(), "c", [7]) == [1, 2, 3, 4, 5, 6, 7]


def test_an_earlier_turn_may_be_named_and_the_branches_stay_apart(session: Session) -> None:
    assert say(session.resume("a"), "c", [7], [8]) == [1, 2, 3, 4, 7, 8]
    assert history(session, "b") == [1, 2, 3, 4, 5, 6]
    assert history(session) == [1, 2, 3, 4, 7, 8]


@pytest.mark.parametrize(
    ("offset", "kept"),
    [(None, 6), (0, 6), (1, 1), (5, 5), (6, 6), (-1, 5), (-6, 0)],
)
def test_an_offset_cuts_the_history(session: Session, offset: int | None, kept: int) -> None:
    where = session.resume(offset=offset)
    assert where.history() == [1, 2, 3, 4, 5, 6][:kept]
    assert say(where, "c", [9]) == [*[1, 2, 3, 4, 5, 6][:kept], 9]


@pytest.mark.parametrize("offset", [7, -7, 10**30])
def test_an_offset_beyond_the_history_is_refused(session: Session, offset: int) -> None:
    with pytest.raises(RequestError, match=r"`offset` must be in \[-6, 6\].*got") as refused:
        session.resume(offset=offset)
    assert refused.value.param == "offset"


def test_where_no_turn_precedes_there_is_nothing_to_cut() -> None:
    assert Session("s").resume(offset=-1, drop_previous_output=True).history() == []


def test_the_previous_output_may_be_dropped(session: Session) -> None:
    assert session.resume("a", drop_previous_output=True).history() == [1, 2]
    both = session.resume(drop_previous_output=True, offset=-1)
    assert both.history() == [1, 2, 3, 4]
    assert say(both, "c", [7], [8]) == [1, 2, 3, 4, 7, 8]
    assert session.resume(drop_previous_output=True).history() == [1, 2, 3, 4, 7]


def test_a_replacement_takes_the_place_of_what_followed(session: Session) -> None:
    say(session.resume("b"), "c", [7])
    say(session.resume("a"), "d", [8])
    where = session.resume("a", replace=True)
    assert history(session, "c") == [1, 2, 3, 4, 5, 6, 7]
    say(where, "e", [9])
    assert history(session) == [1, 2, 3, 4, 9]
    for forgotten in "bcd":
        with pytest.raises(RequestError, match=f"'{forgotten}' is no turn"):
            session.resume(forgotten)
    assert history(session, "a") == [1, 2, 3, 4]


def test_a_replacement_of_no_turn_begins_anew(session: Session) -> None:
    assert say(session.resume(replace=True, offset=-1), "c", [9]) == [9]
    assert session.turn("a") is None
    assert session.tokens == 1


def test_a_replacement_that_fails_replaces_nothing(session: Session) -> None:
    where = session.resume("a", replace=True)
    with session.running(where, "c", 5):
        pass
    assert history(session) == [1, 2, 3, 4, 5, 6]


def test_a_turn_whose_parent_is_forgotten_while_it_runs_is_dropped(session: Session) -> None:
    where = session.resume("b")
    with session.running(where, "late", 1):
        say(session.resume("a", replace=True), "c", [9])
        session.record(as_turn(where, "late", [7]))
    assert session.turn("late") is None
    assert history(session) == [1, 2, 3, 4, 9]


def test_an_unknown_turn_is_refused(session: Session) -> None:
    with pytest.raises(RequestError, match="`rid` 'x' is no turn") as refused:
        session.resume("x", replace=True)
    assert (refused.value.param, refused.value.code) == ("rid", "unknown_turn")


def test_a_rid_is_taken_once(session: Session) -> None:
    where = session.resume()
    with pytest.raises(RequestError, match="'a' is a turn"), session.running(where, "a", 1):
        pass
    with (
        session.running(where, "c", 1),
        pytest.raises(RequestError, match="'c' is a turn"),
        session.running(where, "c", 1),
    ):
        pass
    say(where, "c", [7])


def test_an_empty_turn_is_refused(session: Session) -> None:
    with pytest.raises(RequestError, match="input_ids"), session.running(session.resume(), "c", 0):
        pass


def test_what_running_turns_may_add_counts_towards_the_capacity() -> None:
    session = Session("s", capacity=10)
    say(session.resume(), "a", [1, 2], [3, 4])
    where = session.resume()
    with session.running(where, "b", 4):
        with pytest.raises(RequestError, match=r"add 3 .* room for 2 .* 10") as refused:
            session.running(where, "c", 3).__enter__()
        assert refused.value.code == "session_full"
        with session.running(where, "c", 2):
            assert session.tokens == 10
    assert session.tokens == 4
    say(where, "c", [5] * 6)
    with pytest.raises(RequestError, match="room for 0"), session.running(where, "d", 1):
        pass


def test_what_a_replacement_forgets_makes_room() -> None:
    session = Session("s", capacity=10)
    say(session.resume(), "a", [1, 2], [3, 4])
    say(session.resume(), "b", [5] * 6)
    with pytest.raises(RequestError, match="room for 0"), session.running(session.resume(), "c", 1):
        pass
    assert len(say(session.resume("a", replace=True), "c", [7] * 6)) == 10
    assert session.tokens == 10


def test_it_expires_when_no_turn_has_run_for_its_timeout() -> None:
    clock = Clock()
    session = Session("s", timeout=10, clock=clock)
    clock.now += 9.9
    assert not session.expired
    with session.running(session.resume(), "a", 1):
        clock.now += 1000
        assert not session.expired
    clock.now += 9.9
    assert not session.expired
    with pytest.raises(RequestError):
        session.resume("x")
    clock.now += 0.1
    assert session.expired


@pytest.mark.parametrize("timeout", [0, -1, 3601, float("inf"), float("nan"), "5", True])
def test_bad_timeouts(timeout: Any) -> None:
    with pytest.raises(RequestError, match=r"`timeout` must be a number in \(0, 3600\]"):
        Session("s", timeout=timeout)


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "5", True])
def test_bad_capacities(capacity: Any) -> None:
    with pytest.raises(RequestError, match="`capacity` must be an integer of at least 1"):
        Session("s", capacity=capacity)


def test_a_very_long_history() -> None:
    session = Session("s")
    for number in range(20_000):
        where = session.resume()
        with session.running(where, str(number), 1):
            session.record(as_turn(where, str(number), [number % 100]))
    assert history(session) == [number % 100 for number in range(20_000)]
    assert session.resume(offset=3).history() == [0, 1, 2]
