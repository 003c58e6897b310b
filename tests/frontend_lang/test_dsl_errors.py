"""Failures: raised where the value is read, as what they were, with the variable's name."""

from __future__ import annotations

import threading
import time

import pytest

import phloem as ph

BOOM = ph.GenerationError("the pool burst")


@ph.function
def three(s):
    s += "A:" + ph.gen("first")
    s += "B:" + ph.gen("second")
    s += "C:" + ph.gen("third")


@pytest.fixture
def broken(scripted):
    return scripted({"A:": "fine", "B:": BOOM, "C:": "never"})


def test_what_comes_before_a_failure_stays_readable_and_what_follows_raises_it(broken):
    state = three.run(backend=broken)
    assert state["first"] == "fine"
    for name in ("second", "third"):
        with pytest.raises(ph.GenerationError, match="the pool burst"):
            state[name]
    with pytest.raises(ph.GenerationError):
        state.text()
    with pytest.raises(ph.GenerationError):
        state.messages()
    assert state.error() is BOOM
    assert any("'second'" in note for note in BOOM.__notes__)


def test_an_engines_refusal_keeps_its_data(scripted):
    @ph.function
    def program(s):
        s += "A:" + ph.gen("x", top_p=7.0)

    state = program.run(backend=scripted({"A:": ""}))
    with pytest.raises(ph.RequestError) as caught:
        state["x"]
    assert caught.value.param == "top_p"


def test_a_read_in_the_function_raises_out_of_run(broken):
    @ph.function
    def program(s):
        s += "B:" + ph.gen("x")
        return s["x"]

    with pytest.raises(ph.GenerationError, match="the pool burst"):
        program.run(backend=broken)


def test_a_variable_that_is_never_made_is_a_key_error_that_names_the_others(scripted):
    @ph.function
    def program(s):
        s += "A:" + ph.gen("here")
        with s.var_scope("open"), pytest.raises(KeyError, match=r"'open'.*'here'"):
            s["open"]
        s["typo"]

    with pytest.raises(KeyError, match=r"no variable 'typo'.*'here', 'open'"):
        program.run(backend=scripted({"A:": "1"}))
    state = three.run(backend=scripted({"A:": "1"}))
    with pytest.raises(KeyError, match="'fourth'"):
        state["fourth"]


def test_a_fork_of_a_failed_state_fails_alike_and_spares_its_siblings(broken):
    @ph.function
    def program(s):
        forks = s.fork(3)
        forks[0] += "A:" + ph.gen("x")
        forks[1] += "B:" + ph.gen("x")
        forks[2] += "C:" + ph.gen("x")
        return [fork.error() for fork in forks], [forks[0]["x"], forks[2]["x"]]

    errors, values = program.run(backend=broken).ret_value
    assert errors == [None, BOOM, None]
    assert values == ["fine", "never"]


@pytest.mark.parametrize("mode", ["gather_variable", "concate_and_append"])
def test_joining_a_failed_fork_brings_its_error_to_the_parent(broken, mode):
    @ph.function
    def program(s):
        forks = s.fork(2)
        forks += lambda i: "AB"[i] + ":" + ph.gen("x")
        forks.join(mode)

    state = program.run(backend=broken)
    assert state.error() is BOOM
    with pytest.raises(ph.GenerationError):
        state.text()


def test_a_bug_in_the_function_is_raised_by_run_and_ends_what_is_under_way(scripted):
    started = threading.Event()

    @ph.function
    def program(s):
        s += "A:" + ph.gen("x", max_tokens=4000)
        started.wait(10)
        raise ZeroDivisionError("a bug")

    def endless(text, index):
        started.set()
        time.sleep(0.005)  # or it would end by itself before a busy machine notices
        return "a" * (1 + len(text) % 2)

    client = scripted({"A:": ""})
    client._reply = endless
    with pytest.raises(ZeroDivisionError, match="a bug"):
        program.run(backend=client)
    for _ in range(200):
        if client.aborted:
            break
        threading.Event().wait(0.02)
    assert client.aborted == [client.requests[0].rid]


def test_items_of_a_batch_fail_alone(broken):
    @ph.function
    def program(s, cue):
        if cue == "bug":
            raise ZeroDivisionError
        s += cue + ph.gen("x")

    items = [{"cue": "A:"}, {"cue": "B:"}, {"cue": "bug"}, {"cue": "C:"}]
    states = program.run_batch(items, backend=broken)
    assert [type(state.error()) for state in states] == [
        type(None),
        ph.GenerationError,
        ZeroDivisionError,
        type(None),
    ]
    assert states[0]["x"] == "fine" and states[3]["x"] == "never"
    with pytest.raises(ph.GenerationError):
        states[1]["x"]
    with pytest.raises(ZeroDivisionError):
        states[2]["x"]
