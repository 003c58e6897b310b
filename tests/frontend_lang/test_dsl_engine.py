"""Programs on the real engine with a tiny random model."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import jsonschema
import pytest
from pydantic import BaseModel, Field

import phloem as ph

LONG = "The tissue that carries what a tree makes along its branches. " * 6


class Thing(BaseModel, extra="forbid"):
    tag: str = Field(max_length=4)
    size: int = Field(ge=0, le=99)


@pytest.fixture(scope="module")
def engine(tiny_model: Path):
    with make_engine(tiny_model) as engine:
        yield engine


def make_engine(model: Path, **options) -> ph.Engine:
    settings = {"dtype": "float32", "kv_tokens": 4096, "random_seed": 0, **options}
    return ph.Engine(str(model), check_invariants=True, **settings)


@ph.function
def everything(s):
    s += LONG
    s += ph.user("a question") + ph.assistant(ph.gen("answer", max_tokens=12))
    forks = s.fork(3)
    forks += lambda i: f" branch {i}: " + ph.gen("x", max_tokens=4 + i, stop="z")
    forks += ph.select("y", [" yes", " no", " not at all"])
    forks.join()
    s += "".join(s["x"]) + ph.gen("last", regex="[a-c]{3}")


def test_greedy_programs_do_not_depend_on_the_cache_or_on_streaming(engine, tiny_model):
    runs = [everything.run(backend=engine, temperature=0) for _ in range(2)]
    runs.append(everything.run(backend=engine, temperature=0, stream=True))
    with make_engine(tiny_model, prefix_cache=False) as uncached:
        runs.append(everything.run(backend=uncached, temperature=0))
        texts = [run.text() for run in runs]
        choices = [run["y"] for run in runs]
    assert texts == texts[:1] * 4
    assert choices == choices[:1] * 4
    assert "".join(runs[2].text_iter()) == texts[2]
    assert re.fullmatch("[a-c]{3}", runs[0]["last"])


def test_forks_and_choices_compute_their_common_text_once(engine):
    @ph.function
    def program(s):
        s += LONG + "once"
        forks = s.fork(4)
        forks += lambda i: f" {i}:" + ph.gen("x", max_tokens=2)
        forks += ph.select("y", [" yes", " no"])
        forks.join()

    engine.flush_cache()
    before = engine.stats()
    assert program.run(backend=engine).error() is None
    after = engine.stats()
    computed = after.computed_tokens_total - before.computed_tokens_total
    prefix = len(engine.client.tokenizer.encode(LONG))
    assert after.prompt_tokens_total - before.prompt_tokens_total > 11 * prefix
    assert prefix < computed < 3 * prefix


def test_what_is_constrained_is_valid_whatever_a_random_model_says(engine):
    @ph.function
    def program(s):
        s += "x" + ph.gen("thing", json_schema=Thing, max_tokens=150)
        s += ph.gen("number", dtype=int, max_tokens=30) + ph.gen("real", dtype=float, max_tokens=50)
        s += ph.gen("flag", dtype=bool) + ph.gen("list", ebnf='root ::= "[" [0-9] ("," [0-9])? "]"')

    for state in program.run_batch([()] * 4, backend=engine):
        thing = state.result("thing", Thing)
        jsonschema.validate(json.loads(state["thing"]), Thing.model_json_schema())
        assert 0 <= thing.size <= 99
        assert isinstance(int(state["number"]), int) and isinstance(float(state["real"]), float)
        assert state["flag"] in ("True", "False")
        assert len(json.loads(state["list"])) in (1, 2)


def test_samples_differ_and_seeds_repeat(engine):
    @ph.function
    def program(s):
        s += "x" + ph.gen("a", n=4, max_tokens=8, seed=1, ignore_eos=True)

    first, second = (program.run(backend=engine) for _ in range(2))
    assert first["a"] == second["a"]
    assert len(set(first["a"])) > 1
    assert first.text() == "x" + first["a"][0]


def test_log_probabilities_are_reported_as_asked(engine):
    @ph.function
    def program(s):
        s += "some text"
        s += ph.gen(
            "x",
            max_tokens=3,
            ignore_eos=True,
            return_logprob=True,
            logprob_start_len=0,
            top_logprobs_num=2,
        )

    meta = program.run(backend=engine).get_meta_info("x")
    assert meta["completion_tokens"] == 3 == len(meta["output_token_logprobs"])
    assert len(meta["input_token_logprobs"]) == meta["prompt_tokens"]
    assert meta["input_token_logprobs"][0][0] is None
    assert all(logprob <= 0 for logprob, _, _ in meta["output_token_logprobs"])
    assert [len(top) for top in meta["output_top_logprobs"]] == [2, 2, 2]
    assert meta["finish_reason"] == {"type": "length", "matched": None}


def test_refusals_come_from_the_engine_and_name_their_field(engine):
    @ph.function
    def program(s, **options):
        s += "x" + ph.gen("x", **options)

    for options in (
        {"json_schema": {"type": 5}},
        {"regex": "("},
        {"ebnf": "root ::= missing"},
        {"max_tokens": 10_000},
    ):
        state = program.run(backend=engine, **options)
        with pytest.raises(ph.RequestError) as caught:
            state["x"]
        assert any("'x'" in note for note in caught.value.__notes__)


def test_a_closed_engine_is_an_error_and_not_a_wait(tiny_model):
    engine = make_engine(tiny_model)
    state = everything.run(backend=engine)
    state.sync()
    engine.close()
    with pytest.raises(ph.EngineDeadError):
        everything.run(backend=engine).text()


def test_programs_left_by_an_exception_are_aborted_in_the_engine(engine):
    @ph.function
    def program(s):
        s += "x" + ph.gen("x", max_tokens=400, ignore_eos=True)
        deadline = time.monotonic() + 10
        while engine.stats().running == 0 and time.monotonic() < deadline:
            time.sleep(0.005)
        raise ZeroDivisionError

    before = engine.stats().aborted_total
    with pytest.raises(ZeroDivisionError):
        program.run(backend=engine)
    deadline = time.monotonic() + 10
    while engine.stats().aborted_total == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.stats().aborted_total == before + 1
