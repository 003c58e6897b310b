"""The synchronous engine, as a script uses it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from phloem.runtime.errors import EngineDeadError, RequestError
from phloem.runtime.local import Engine

GREEDY = {"temperature": 0.0, "max_new_tokens": 6, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[Engine]:
    with Engine(str(tiny_model), kv_tokens=4096, dtype="float32") as made:
        yield made


def test_text_and_ids_are_the_same_prompt(engine: Engine) -> None:
    text = "The tissue that"
    by_ids = engine.generate(engine.client.tokenizer.encode(text), GREEDY)
    assert engine.generate(text, GREEDY).token_ids == by_ids.token_ids
    assert len(by_ids.token_ids) == 6


def test_a_stream_joins_to_the_completion(engine: Engine) -> None:
    whole = engine.generate("Numbers: 1 2", GREEDY).text
    assert "".join(delta.text for delta in engine.stream("Numbers: 1 2", GREEDY)) == whole


def test_a_stream_may_be_left(engine: Engine) -> None:
    for _ in engine.stream("Numbers", {**GREEDY, "max_new_tokens": 300}):
        break
    assert engine.generate("Numbers", GREEDY).token_ids


def test_batches_and_continuations(engine: Engine) -> None:
    batch = engine.generate_batch(["a", "b", "c"], GREEDY)
    assert [done.token_ids for done in batch] == [
        engine.generate(prompt, GREEDY).token_ids for prompt in "abc"
    ]
    assert len(engine.generate_n("a", {**GREEDY, "n": 3})) == 3


def test_chat_uses_the_template(engine: Engine) -> None:
    done = engine.chat([{"role": "user", "content": "hi"}], {**GREEDY, "choices": ["yes", "no"]})
    assert done.text in ("yes", "no")


def test_wrong_calls_are_refused(engine: Engine) -> None:
    with pytest.raises(RequestError, match="prompt"):
        engine.generate(5)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="max_tokens"):
        engine.generate("x", {"max_tokens": 2})
    with pytest.raises(RequestError, match="messages"):
        engine.chat([])
    with pytest.raises(RequestError, match="temperature"):
        engine.generate("x", {"temperature": 1e300})


def test_works_beside_a_running_loop_and_in_threads(engine: Engine) -> None:
    async def inside() -> list[int]:
        return engine.generate("a", GREEDY).token_ids

    found: list[list[int]] = [asyncio.run(inside())]
    threads = [
        threading.Thread(target=lambda: found.append(engine.generate("a", GREEDY).token_ids))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 5


def test_a_closed_engine_says_so(tiny_model: Path) -> None:
    engine = Engine(str(tiny_model), kv_tokens=1024)
    engine.close()
    engine.close()
    with pytest.raises(EngineDeadError, match="shut down"):
        engine.generate("x")


def test_an_unknown_option_is_refused(tiny_model: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match="speed"):
        Engine(str(tiny_model), speed="fast")
