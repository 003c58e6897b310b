"""Programs on a scripted model: text, variables, options, branches."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

import phloem as ph


@ph.function
def ask(s, question):
    s += "Q: " + question + "\n"
    s += "A:" + ph.gen("answer", stop="\n")


def test_a_program_fills_its_variables_and_its_text(scripted):
    client = scripted({"A:": " forty-two\nQ: next"})
    state = ask.run("six times seven?", backend=client)
    assert state["answer"] == " forty-two"
    assert state.text() == "Q: six times seven?\nA: forty-two"
    assert state.error() is None
    assert "answer" in state and "other" not in state
    assert state.get_meta_info("answer")["finish_reason"] == {"type": "stop", "matched": "\n"}


def test_options_of_the_run_hold_where_a_gen_sets_none(scripted):
    client = scripted({"A:": " x\n"})
    ask.run("?", backend=client, temperature=0.25, max_new_tokens=9, seed=5, stop="never")
    ask.run("?", backend=client)["answer"]
    first, second = (request.sampling for request in client.requests)
    assert (first.temperature, first.max_new_tokens, first.seed) == (0.25, 9, 5)
    assert first.stop == ("\n",)
    assert (second.temperature, second.max_new_tokens, second.seed) == (1.0, 128, None)


def test_a_parameter_of_the_program_wins_over_an_option_of_that_name(scripted):
    @ph.function
    def program(s, n):
        s += f"{n} A:" + ph.gen("answer")

    client = scripted({"A:": "x"})
    assert program.run(n=3, backend=client).text() == "3 A:x"
    assert client.requests[0].sampling.n == 1


def test_one_run_is_one_program_to_the_scheduler(scripted):
    @ph.function
    def twice(s):
        s += "A:" + ph.gen() + "A:" + ph.gen()

    client = scripted({"A:": " x\n"})
    for _ in range(2):
        twice.run(backend=client).sync()
    programs = [request.program for request in client.requests]
    assert programs[0] == programs[1] != programs[2] == programs[3]


def test_the_function_reads_values_while_it_runs_and_returns_what_it_likes(scripted):
    @ph.function
    def program(s):
        s += "tool?" + ph.gen("tool")
        s += {"add": "2+2=", "echo": "hm"}[s["tool"]]
        s += ph.gen("result")
        return s["result"] * 2

    state = program.run(backend=scripted({"tool?": "add", "2+2=": "4"}))
    assert state.ret_value == "44"


def test_n_texts_become_a_list_and_the_program_goes_on_with_the_first(scripted):
    @ph.function
    def program(s):
        s += "A:" + ph.gen("answers", n=3) + "!"

    state = program.run(backend=scripted({"A:": ["one", "two", "three"]}))
    assert state["answers"] == ["one", "two", "three"]
    assert state.text() == "A:one!"
    assert len(state.get_meta_info("answers")) == 3


def test_variables_can_be_set_scoped_and_overwritten(scripted):
    @ph.function
    def program(s):
        s["given"] = {"any": "value"}
        with s.var_scope("all"):
            s += "A:" + ph.gen("x")
        s += "B:" + ph.gen("x")

    state = program.run(backend=scripted({"A:": "1", "B:": "2"}))
    assert state["given"] == {"any": "value"}
    assert state["all"] == "A:1"
    assert state["x"] == "2"


def test_constraints_reach_the_engine(scripted):
    @ph.function
    def program(s):
        s += "n:" + ph.gen("number", dtype=int, max_tokens=8) + ";" + ph.gen("word", regex="ab|cd")

    state = program.run(backend=scripted({"n:": "7 apples", ";": "cde"}))
    assert state["number"] == "7"
    assert state["word"] == "cd"


def test_json_is_read_as_an_object_of_its_model(scripted):
    class Point(BaseModel):
        x: int
        y: int

    @ph.function
    def program(s):
        s += "at:" + ph.gen("point")

    state = program.run(backend=scripted({"at:": json.dumps({"x": 1, "y": 2})}))
    assert state.result("point", Point) == Point(x=1, y=2)


def test_forks_start_alike_and_go_on_alone(scripted):
    @ph.function
    def program(s):
        s += "both "
        s += "A:" + ph.gen("early")
        forks = s.fork(3)
        forks += lambda i: f" fork{i}"
        forks += ["x", "y", "z"]
        forks[1] += "B:" + ph.gen("late")
        return [fork.text() for fork in forks], forks[0]["early"], forks[1]["late"], len(forks)

    state = program.run(backend=scripted({"A:": "1", "B:": "2"}))
    texts, early, late, count = state.ret_value
    assert texts == ["both A:1 fork0x", "both A:1 fork1yB:2", "both A:1 fork2z"]
    assert (early, late, count) == ("1", "2", 3)
    assert state.text() == "both A:1"
    assert "late" not in state


def test_a_fork_may_come_before_any_text(scripted):
    @ph.function
    def program(s):
        forks = s.fork(2)
        forks += lambda i: f"{i}:" + ph.gen("x")
        forks.join()

    state = program.run(backend=scripted({"0:": "a", "1:": "b"}))
    assert state["x"] == ["a", "b"]


def test_gathering_makes_lists_of_what_the_forks_made_even_of_names_known_before(scripted):
    @ph.function
    def program(s):
        s["old"] = "kept"
        for round_ in "AB":
            forks = s.fork(2)
            forks += lambda i, name=round_: f"{name}{i}:" + ph.gen("x")
            forks[0] += "C:" + ph.gen("only")
            forks.join()
            s += f"{s['x']}"

    state = program.run(
        backend=scripted({f"{r}{i}:": f"{r}{i}" for r in "AB" for i in "01"} | {"C:": "c"})
    )
    assert state["x"] == ["B0", "B1"]
    assert state["only"] == ["c"]
    assert state["old"] == "kept"
    assert state.text() == "['A0', 'A1']['B0', 'B1']"
    assert len(state.get_meta_info("x")) == 2


def test_joining_by_text_appends_what_each_fork_added(scripted):
    @ph.function
    def program(s):
        s += "start "
        forks = s.fork(2)
        forks += lambda i: f"{i}:" + ph.gen("x") + " "
        forks.join("concate_and_append")
        s += "end"

    state = program.run(backend=scripted({"0:": "a", "1:": "b"}))
    assert state.text() == "start 0:a 1:b end"
    assert "x" not in state


def test_forks_of_forks_and_copies(scripted):
    @ph.function
    def program(s):
        s += "."
        inner = s.fork(2)[1].fork(2)
        inner += "A:" + ph.gen("x")
        with s.copy() as other:
            other += "B:" + ph.gen("x")
            return [state["x"] for state in inner] + [other["x"], other.text(), s.text()]

    state = program.run(backend=scripted({"A:": "1", "B:": "2"}))
    assert state.ret_value == ["1", "1", "2", ".B:2", "."]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_fork_refuses_other_than_a_positive_number(scripted, n):
    @ph.function
    def program(s):
        s.fork(n)

    with pytest.raises(ph.RequestError):
        program.run(backend=scripted({"A:": ""}))


def test_groups_refuse_what_does_not_fit(scripted):
    @ph.function
    def program(s):
        forks = s.fork(2)
        with pytest.raises(ph.RequestError, match="3 expressions"):
            forks += ["a", "b", "c"]
        with pytest.raises(ph.RequestError, match="join mode"):
            forks.join("both")
        with pytest.raises(TypeError):
            forks[0] = s
        forks.join()
        with pytest.raises(ph.ProgramError, match="has ended"):
            forks[0] += "late"

    program.run(backend=scripted({"A:": ""}))


def test_a_run_that_is_over_takes_no_more(scripted):
    state = ask.run("?", backend=scripted({"A:": " x"}))
    with pytest.raises(ph.ProgramError, match="has ended"):
        state += "more"
    with pytest.raises(ph.ProgramError, match="has ended"):
        state.fork(2)


def test_bound_arguments_complete_a_call(scripted):
    client = scripted({"A:": " x"})
    assert ask.bind(question="bound").run(backend=client).text() == "Q: bound\nA: x"
    with pytest.raises(TypeError, match="question"):
        ask.run(backend=client)
    with pytest.raises(TypeError, match="unknown"):
        ask.run("?", unknown=1, backend=client)


def test_programs_must_take_s_first_and_be_ordinary_functions():
    with pytest.raises(TypeError, match="'s'"):
        ph.function(lambda state: None)

    async def program(s): ...

    with pytest.raises(TypeError, match="ordinary"):
        ph.function(program)


def test_the_default_backend_serves_runs_that_name_none(scripted):
    client = scripted({"A:": " x"})
    with pytest.raises(ph.ProgramError, match="no backend"):
        ask.run("?")
    ph.set_default_backend(client)
    try:
        assert ask.run("?")["answer"] == " x"
        assert ph.flush_cache()
        assert client.flushed == 1
    finally:
        ph.set_default_backend(None)
    with pytest.raises(TypeError, match="no backend"):
        ph.set_default_backend(object())
