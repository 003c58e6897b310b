"""Sessions of the synchronous engine, as a script uses them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phloem.runtime.errors import EngineDeadError, RequestError
from phloem.runtime.local import Engine

GREEDY = {"temperature": 0.0, "max_new_tokens": 6, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[Engine]:
    with Engine(str(tiny_model), kv_tokens=4096, dtype="float32", check_invariants=True) as made:
        yield made


def test_each_call_goes_on_from_the_one_before(engine: Engine) -> None:
    whole: list[int] = []
    with engine.open_session() as session:
        for prompt in ("The tissue that carries", " what a tree", list(range(20, 50))):
            answer = session.generate(prompt, GREEDY)
            new = engine.client.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
            whole += new
            assert answer.token_ids == engine.generate(whole, GREEDY).token_ids
            assert answer.prompt_tokens == len(whole)
            whole += answer.token_ids
            assert session.token_ids == whole
    assert answer.cached_tokens > 0


def test_branches_are_independent(engine: Engine) -> None:
    session = engine.open_session()
    session.generate("The tissue", GREEDY)
    past = session.token_ids
    branch = session.branch()
    session.generate(" that", GREEDY)
    assert branch.token_ids == past
    branch.generate(" of", GREEDY)
    ids = engine.client.tokenizer.encode
    assert session.token_ids[: len(past) + 1] == [*past, ids(" that")[0]]
    assert branch.token_ids[: len(past) + 1] == [*past, ids(" of")[0]]
    session.close()
    branch.branch().generate("x", GREEDY)
    assert branch.generate(" tree", GREEDY).token_ids


def test_branches_of_an_empty_session_share_nothing(engine: Engine) -> None:
    session = engine.open_session()
    branch = session.branch()
    session.generate("The tissue", GREEDY)
    assert branch.token_ids == []
    branch.generate("Numbers", GREEDY)
    assert branch.token_ids[:2] == engine.client.tokenizer.encode("Numbers")[:2]


def test_a_stream_is_a_turn_once_it_has_ended(engine: Engine) -> None:
    session = engine.open_session()
    prompt = engine.client.tokenizer.encode("Numbers: 1 2")
    made = [token for delta in session.stream(prompt, GREEDY) for token in delta.token_ids]
    assert session.token_ids == prompt + made
    for _ in session.stream("x", {**GREEDY, "max_new_tokens": 300}):
        break
    assert session.token_ids == prompt + made
    for delta in session.stream([40], GREEDY):
        if delta.finish is not None:
            break
    assert session.token_ids[: len(prompt + made) + 1] == [*prompt, *made, 40]


@pytest.mark.parametrize(
    ("sampling", "param"),
    [
        ({"n": 2}, "n"),
        ({"temperature": -1.0}, "temperature"),
        ({"max_new_tokens": 100}, "input_ids"),
        ({"max_tokens": 1}, "max_tokens"),
    ],
)
def test_a_call_that_is_refused_changes_nothing(
    engine: Engine, sampling: dict[str, Any], param: str
) -> None:
    session = engine.open_session(capacity=40)
    session.generate("a", GREEDY)
    past = session.token_ids
    with pytest.raises(RequestError) as refused:
        session.generate("b", {**GREEDY, **sampling})
    assert refused.value.param == param
    assert session.token_ids == past
    session.generate("b", GREEDY)


def test_limits_are_told(engine: Engine) -> None:
    with pytest.raises(RequestError, match="`capacity`"):
        engine.open_session(capacity=0)
    with pytest.raises(RequestError, match="`timeout`"):
        engine.open_session(timeout=3601)
    with pytest.raises(RequestError, match="prompt"):
        engine.open_session().generate(5, GREEDY)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="input_ids"):
        engine.open_session().generate("", GREEDY)


def test_a_closed_session_says_so(engine: Engine) -> None:
    with engine.open_session() as session:
        session.generate("a", GREEDY)
    for call in (session.generate, lambda prompt: list(session.stream(prompt))):
        with pytest.raises(RequestError, match="closed"):
            call("b")
    with pytest.raises(RequestError, match="closed"):
        session.branch()


def test_branches_run_in_threads(engine: Engine) -> None:
    session = engine.open_session()
    session.generate("The tissue", GREEDY)
    branches = [session.branch() for _ in range(6)]
    threads = [
        threading.Thread(target=branch.generate, args=([30 + number], GREEDY))
        for number, branch in enumerate(branches)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    past = session.token_ids
    for number, branch in enumerate(branches):
        assert branch.token_ids[: len(past) + 1] == [*past, 30 + number]
        assert len(branch.token_ids) == len(past) + 7


def test_with_the_engine_the_sessions_end(tiny_model: Path) -> None:
    engine = Engine(str(tiny_model), kv_tokens=1024)
    session = engine.open_session()
    engine.close()
    with pytest.raises(EngineDeadError):
        session.generate("a")
