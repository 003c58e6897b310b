"""Many runs at once."""

from __future__ import annotations

import threading

import pytest

import phloem as ph


@ph.function
def answer(s, cue, mark="?"):
    s += cue + mark + "A:" + ph.gen("x")
    return threading.get_ident()


def test_states_come_in_the_order_of_the_items(scripted):
    client = scripted({f"{i}?A:": f"<{i}>" for i in range(40)})
    items = [{"cue": str(i)} if i % 2 else (str(i), "?") for i in range(40)]
    states = answer.run_batch(items, backend=client, temperature=0.5)
    assert [state["x"] for state in states] == [f"<{i}>" for i in range(40)]
    assert {request.sampling.temperature for request in client.requests} == {0.5}


def test_an_empty_batch_is_no_states(scripted):
    assert answer.run_batch([], backend=scripted({"A:": ""})) == []


def test_threads_are_as_many_as_asked_for(scripted):
    states = answer.run_batch(
        [("a",)] * 9, num_threads=1, progress_bar=True, backend=scripted({"A:": "x"})
    )
    assert len({state.ret_value for state in states}) == 1


@pytest.mark.parametrize("num_threads", [0, -1, 1.5, "many", True])
def test_bad_thread_counts_are_refused(scripted, num_threads):
    with pytest.raises(ph.RequestError) as caught:
        answer.run_batch([("a",)], num_threads=num_threads, backend=scripted({"A:": ""}))
    assert caught.value.param == "num_threads"


def test_items_are_checked_before_anything_runs(scripted):
    client = scripted({"A:": "x"})
    for bad in ({"cue": "a", "typo": 1}, ("a", "b", "c"), {}, "a", 3):
        with pytest.raises(TypeError, match="item 1"):
            answer.run_batch([("a",), bad], backend=client)
    with pytest.raises(TypeError, match="temprature"):
        answer.run_batch([("a",)], temprature=0, backend=client)
    assert client.requests == []


def test_programs_run_programs(scripted):
    client = scripted({"A:": "x", "outer:": "y"})

    @ph.function
    def outer(s):
        inner = answer.run_batch([("a",)] * 3, backend=client)
        s += "".join(state["x"] for state in inner) + "outer:" + ph.gen("y")

    states = outer.run_batch([()] * 3, backend=client)
    assert [state.text() for state in states] == ["xxxouter:y"] * 3
