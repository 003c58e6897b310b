"""SGLang's sessions over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Serving, serving, serving_client, until
from sse_reader import error_of, events
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.processors import TemplateProcessing

from phloem.runtime.config import EngineConfig
from phloem.runtime.in_process import local_client
from phloem.runtime.sessions.book import MAX_SESSIONS
from phloem.runtime.text.tokenizer import Tokenizer, TokenizerConfig


def open_session(toy: Serving, **fields: object) -> str:
    response = toy.post("/open_session", {"capacity_of_str_len": 1000, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def body(session: str, prompt: Any, tokens: int = 2, **fields: Any) -> dict[str, Any]:
    """A turn; fields of the session's parameters are those that it has, the rest the body's."""
    names = ("rid", "offset", "replace", "drop_previous_output")
    own = {name: fields.pop(f"at_{name}") for name in names if f"at_{name}" in fields}
    sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
    field = "input_ids" if isinstance(prompt, list) else "text"
    return {
        field: prompt,
        "sampling_params": sampling,
        "session_params": {"id": session, **own},
        **fields,
    }


def say(toy: Serving, session: str, prompt: Any, **fields: Any) -> dict[str, Any]:
    response = toy.post("/generate", body(session, prompt, **fields))
    assert response.status_code == 200, response.text
    return response.json()


def sent(toy: Serving) -> list[int]:
    """The prompt that reached the engine last."""
    return toy.engine.added[-1].input_ids


def refusal(toy: Serving, request: dict[str, Any], status: int = 400) -> dict[str, Any]:
    before = len(toy.engine.added)
    response = toy.post("/generate", request)
    assert response.status_code == status, response.text
    assert len(toy.engine.added) == before
    return error_of(response.content)


def test_only_what_is_new_is_sent(toy: Serving) -> None:
    session = open_session(toy, timeout=30)
    say(toy, session, [40, 41, 42])
    assert sent(toy) == [40, 41, 42]
    result = say(toy, session, [50])
    assert sent(toy) == [40, 41, 42, 40, 41, 50]
    assert result["meta_info"]["prompt_tokens"] == 6
    assert result["output_ids"] == [40, 41]
    assert toy.engine.added[-1].pin_ttl == 30


def test_streamed_turns_are_turns(toy: Serving) -> None:
    session = open_session(toy)
    chunks = events(toy.post("/generate", body(session, [40, 41], stream=True)).text)
    say(toy, session, [50], at_rid=chunks[-1]["meta_info"]["id"])
    assert sent(toy) == [40, 41, 40, 41, 50]


def test_branches_offsets_and_dropped_outputs(toy: Serving) -> None:
    session = open_session(toy)
    first = say(toy, session, [40, 41])["meta_info"]["id"]
    say(toy, session, [50], rid="second")
    say(toy, session, [51], at_rid=first)
    assert sent(toy) == [40, 41, 40, 41, 51]
    say(toy, session, [52], at_rid=first, at_offset=-1)
    assert sent(toy) == [40, 41, 40, 52]
    say(toy, session, [53], at_rid="second", at_drop_previous_output=True)
    assert sent(toy) == [40, 41, 40, 41, 50, 53]


def test_replacing_goes_back(toy: Serving) -> None:
    """The order of SGLang's own test: ``replace`` and a null ``rid`` from the first turn on."""
    session = open_session(toy)
    rids: list[str | None] = [None]
    for token in (40, 50, 60):
        result = say(toy, session, [token], at_rid=rids[-1], at_offset=-1, at_replace=True)
        rids.append(result["meta_info"]["id"])
    assert sent(toy) == [40, 40, 50, 40, 60]
    say(toy, session, [70], at_rid=rids[1], at_replace=True)
    assert sent(toy) == [40, 40, 40, 70]
    error = refusal(toy, body(session, [80], at_rid=rids[2]))
    assert error["param"] == "session_params.rid"


def with_bos(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer, with a BOS token before each text."""
    fast = FastTokenizer.from_str(tokenizer.to_json())
    fast.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    config = TokenizerConfig(eos_token_ids=tokenizer.eos_token_ids, bos_token_id=1)
    return Tokenizer(fast, config)


def test_special_tokens_begin_a_history_and_no_turn(tokenizer: Tokenizer) -> None:
    hello, more = tokenizer.encode("hello"), tokenizer.encode(" more")
    with serving(with_bos(tokenizer)) as toy:
        session = open_session(toy)
        assert say(toy, session, "hello", tokens=1)["output_ids"] == [1]
        assert sent(toy) == [1, *hello]
        say(toy, session, " more", tokens=1)
        assert sent(toy) == [1, *hello, 1, *more]
        written = "<|im_start|> more"
        say(toy, session, written, tokens=1, at_replace=True, at_rid=toy.engine.added[0].rid)
        assert sent(toy) == [1, *hello, 1, 1, *more]
        say(toy, session, "hello", at_replace=True)
        assert sent(toy) == [1, *hello]


@pytest.fixture
def slow(tokenizer: Tokenizer) -> Iterator[Serving]:
    with serving(tokenizer, delay=0.01) as made:
        yield made


@pytest.mark.parametrize("at_replace", [False, True])
def test_who_leaves_in_a_turn_goes_on_from_the_last_good_one(
    slow: Serving, at_replace: bool
) -> None:
    session = open_session(slow)
    first = say(slow, session, [40, 41])["meta_info"]["id"]
    say(slow, session, [50])
    where = {"at_rid": first, "at_replace": True} if at_replace else {}
    with slow.stream("/generate", body(session, [60], 500, stream=True, **where)) as lines:
        next(lines)
    result = say(slow, session, [70])
    assert sent(slow) == [40, 41, 40, 41, 50, 40, 41, 70]
    assert result["output_ids"] == [40, 41]
    until(lambda: not slow.engine.running and not slow.service.active)


def test_an_aborted_turn_is_not_kept(slow: Serving) -> None:
    session = open_session(slow)
    say(slow, session, [40, 41])
    request = body(session, [60], 500, stream=True, rid="cut")
    with slow.stream("/generate", request) as lines:
        next(lines)
        assert slow.post("/abort_request", {"rid": "cut"}).json() == {"aborted": 1}
        assert list(lines)[-1] == "data: [DONE]"
    assert refusal(slow, body(session, [70], at_rid="cut"))["param"] == "session_params.rid"
    say(slow, session, [70])
    assert sent(slow) == [40, 41, 40, 41, 70]


def test_turns_of_one_parent_run_side_by_side(slow: Serving) -> None:
    session = open_session(slow)
    root = say(slow, session, [40, 41])["meta_info"]["id"]
    request = body(session, [60], 50, stream=True, rid="long", at_rid=root)
    with slow.stream("/generate", request) as lines:
        next(lines)
        say(slow, session, [70], at_rid=root, rid="short")
        assert list(lines)[-1] == "data: [DONE]"
    say(slow, session, [80], at_rid="short")
    assert sent(slow) == [40, 41, 40, 41, 70, 40, 41, 80]
    say(slow, session, [80], at_rid="long", at_offset=5)
    assert sent(slow) == [40, 41, 40, 41, 60, 80]


def test_closing(toy: Serving) -> None:
    session = open_session(toy)
    say(toy, session, [40])
    assert toy.post("/close_session", {"session_id": session}).json() == {"closed": True}
    assert toy.post("/close_session", {"session_id": session}).json() == {"closed": False}
    error = refusal(toy, body(session, [50]))
    assert (error["param"], error["code"]) == ("session_params.id", "unknown_session")
    assert "session_params.id" in error["message"]


def test_an_id_may_be_chosen_once(toy: Serving) -> None:
    assert open_session(toy, session_id="mine") == "mine"
    again = toy.post("/open_session", {"session_id": "mine"})
    assert again.status_code == 400
    assert error_of(again.content)["param"] == "session_id"


def test_an_idle_session_expires(toy: Serving) -> None:
    session = open_session(toy, timeout=60)
    hasty = open_session(toy, timeout=1e-6)
    assert refusal(toy, body(hasty, [50]))["code"] == "unknown_session"
    say(toy, session, [40])


def test_no_more_than_so_many_are_open(tokenizer: Tokenizer) -> None:
    with serving(tokenizer) as toy:
        for _ in range(MAX_SESSIONS):
            toy.service.sessions.open()
        full = toy.post("/open_session", {})
        assert full.status_code == 503
        assert int(full.headers["retry-after"]) > 0
        assert str(MAX_SESSIONS) in error_of(full.content)["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"session_id": 5}, "session_id"),
        ({"capacity_of_str_len": 0}, "capacity_of_str_len"),
        ({"capacity_of_str_len": 1.5}, "capacity_of_str_len"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 3601}, "timeout"),
        ({"timeout": "5"}, "timeout"),
    ],
)
def test_what_cannot_be_opened(toy: Serving, fields: dict[str, object], param: str) -> None:
    response = toy.post("/open_session", fields)
    assert response.status_code == 400
    error = error_of(response.content)
    assert error["param"] == param
    assert param in error["message"]


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"id": "none"}, "session_params.id"),
        ({"id": 5}, "session_params.id"),
        ({}, "session_params.id"),
        ({"rid": "none"}, "session_params.rid"),
        ({"rid": 5}, "session_params.rid"),
        ({"offset": 4}, "session_params.offset"),
        ({"offset": -4}, "session_params.offset"),
        ({"offset": 1.5}, "session_params.offset"),
        ({"offset": 10**30}, "session_params.offset"),
        ({"replace": 1}, "session_params.replace"),
        ({"drop": True}, "session_params.drop"),
        ([{"id": "none"}], "session_params"),
        ("none", "session_params"),
    ],
)
def test_bad_session_params_are_named(toy: Serving, params: Any, param: str) -> None:
    session = open_session(toy)
    say(toy, session, [40], tokens=2)
    if isinstance(params, dict) and params and "id" not in params:
        params = {"id": session, **params}
    error = refusal(toy, {**body(session, [50]), "session_params": params})
    assert error["param"] == param
    assert param in error["message"]


def test_what_no_turn_can_be(toy: Serving) -> None:
    session = open_session(toy, capacity_of_str_len=20)
    say(toy, session, [40, 41], rid="a")
    for prompt, field in ((["a"], "text"), ([[40]], "input_ids")):
        request = {**body(session, "x"), "text": None, field: prompt}
        error = refusal(toy, request)
        assert error["param"] == field
        assert "session_params" in error["message"]
    several = body(session, "x")
    several["sampling_params"]["n"] = 2
    assert refusal(toy, several)["param"] == "n"
    assert refusal(toy, body(session, [50], rid="a"))["code"] == "duplicate_rid"
    assert refusal(toy, body(session, "", tokens=0))["param"] == "text"
    full = refusal(toy, body(session, "x", tokens=16))
    assert (full["param"], full["code"]) == ("text", "session_full")
    assert "room for 16 of its capacity of 20" in full["message"]
    say(toy, session, "x", tokens=15)


def test_a_history_beyond_the_context_is_refused(toy: Serving) -> None:
    session = open_session(toy, capacity_of_str_len=10_000)
    say(toy, session, [40] * 2000)
    error = refusal(toy, body(session, [40] * 50))
    assert error["code"] == "context_length_exceeded"
    say(toy, session, [40] * 50, at_offset=1000)


def test_other_apis_have_no_sessions(toy: Serving) -> None:
    response = toy.post("/v1/completions", {"prompt": "a", "session_params": {"id": "x"}})
    assert response.status_code == 400
    assert error_of(response.content)["param"] == "session_params"


@pytest.fixture(scope="module")
def tiny(tiny_model: Any) -> Iterator[Serving]:
    config = EngineConfig(
        model=str(tiny_model), dtype="float32", kv_tokens=4096, threads=1, check_invariants=True
    )
    client = local_client(config)
    with serving_client(client) as made:
        yield made
    client.close()


def test_a_session_says_what_its_whole_prompts_say(tiny: Serving) -> None:
    session = open_session(tiny)
    whole: list[int] = []
    cached = []
    for new in (list(range(20, 60)), [70], list(range(80, 100))):
        result = say(tiny, session, new, tokens=6)
        cached.append(result["meta_info"]["cached_tokens"])
        whole += new
        fresh = {**body(session, whole, tokens=6), "session_params": None, "cache_salt": "apart"}
        assert tiny.post("/generate", fresh).json()["output_ids"] == result["output_ids"]
        whole += result["output_ids"]
    assert cached[0] == 0 < cached[1] < cached[2]
