"""``POST /v1/completions``."""

from __future__ import annotations

import math

import pytest
from conftest import Serving
from sse_reader import error_of, events

from phloem.runtime.text.tokenizer import Tokenizer

PATH = "/v1/completions"
TEXT = "The tissue: ünï 漢字 😀."


def test_defaults(toy: Serving, tokenizer: Tokenizer) -> None:
    answer = toy.post(PATH, {"model": "toy", "prompt": TEXT}).json()
    assert answer["object"] == "text_completion"
    assert answer["id"].startswith("cmpl-")
    [choice] = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["logprobs"] is None
    prompt = len(tokenizer.encode(TEXT))
    assert answer["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": 16,
        "total_tokens": prompt + 16,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
    }


@pytest.mark.parametrize(
    ("prompt", "count"),
    [("abc", 1), (["abc", "d"], 2), ([40, 41], 1), ([[40, 41], [50]], 2), (["abc"], 1)],
)
def test_kinds_of_prompts(toy: Serving, prompt: object, count: int) -> None:
    answer = toy.post(PATH, {"prompt": prompt, "max_tokens": 2, "n": 2}).json()
    assert [choice["index"] for choice in answer["choices"]] == list(range(2 * count))
    assert answer["usage"]["completion_tokens"] == 2 * 2 * count


def test_usage_counts_each_prompt_once(toy: Serving) -> None:
    answer = toy.post(PATH, {"prompt": [[40] * 6, [50] * 4], "n": 3, "max_tokens": 1}).json()
    assert answer["usage"]["prompt_tokens"] == 10
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 5}


@pytest.mark.parametrize("max_tokens", [0, 1, 5])
@pytest.mark.parametrize("stream", [False, True])
def test_loglikelihood_calls(
    toy: Serving, tokenizer: Tokenizer, max_tokens: int, stream: bool
) -> None:
    """Token-id prompts with echo, as evaluation harnesses send them."""
    prompts = [tokenizer.encode(TEXT), tokenizer.encode("plain")]
    body = {"prompt": prompts, "echo": True, "logprobs": 1, "max_tokens": max_tokens}
    if stream:
        choices = joined(events(toy.post(PATH, {**body, "stream": True}).text))
    else:
        choices = {c["index"]: c for c in toy.post(PATH, body).json()["choices"]}
    for index, prompt in enumerate(prompts):
        scores = choices[index]["logprobs"]
        assert len({len(column) for column in scores.values()}) == 1
        assert len(scores["tokens"]) == len(prompt) + max_tokens
        assert scores["token_logprobs"][0] is None
        assert scores["top_logprobs"][0] is None
        text = choices[index]["text"]
        assert text.startswith(tokenizer.decode(prompt))
        for place in range(1, len(prompt)):
            token, top = scores["tokens"][place], scores["top_logprobs"][place]
            assert scores["token_logprobs"][place] == top[token] == max(top.values())
            if not token.startswith("bytes:"):
                offset = scores["text_offset"][place]
                assert text[offset : offset + len(token)] == token


def joined(chunks: list[dict]) -> dict[int, dict]:
    """A stream's choices as the whole answer has them."""
    choices: dict[int, dict] = {}
    for chunk in chunks:
        for part in chunk["choices"]:
            whole = choices.setdefault(part["index"], {"text": "", "logprobs": None})
            whole["text"] += part["text"]
            if part["logprobs"] is not None:
                whole["logprobs"] = whole["logprobs"] or {name: [] for name in part["logprobs"]}
                for name, column in part["logprobs"].items():
                    whole["logprobs"][name] += column
    return choices


def test_echo_repeats_a_text_as_it_was_sent(toy: Serving) -> None:
    text = "<|im_start|>user  two spaces"
    answer = toy.post(PATH, {"prompt": text, "echo": True, "max_tokens": 0, "logprobs": 0}).json()
    [choice] = answer["choices"]
    assert choice["text"] == text
    assert choice["logprobs"]["tokens"][0] == "<|im_start|>"
    assert choice["logprobs"]["text_offset"][:2] == [0, len("<|im_start|>")]


def test_special_tokens_of_an_id_prompt_take_no_room(toy: Serving, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("<|im_start|>user")
    answer = toy.post(PATH, {"prompt": ids, "echo": True, "max_tokens": 0, "logprobs": 0}).json()
    [choice] = answer["choices"]
    assert choice["text"] == "user"
    assert choice["logprobs"]["text_offset"][:2] == [0, 0]


def test_stream_joins_to_the_whole(toy: Serving) -> None:
    body = {"prompt": ["abc 漢字", "def"], "n": 2, "max_tokens": 12, "logprobs": 2}
    whole = toy.post(PATH, body).json()
    chunks = events(toy.post(PATH, {**body, "stream": True}).text)
    parts = joined(chunks)
    for choice in whole["choices"]:
        assert parts[choice["index"]]["text"] == choice["text"]
        assert parts[choice["index"]]["logprobs"] == choice["logprobs"]
    ends = [c["index"] for chunk in chunks for c in chunk["choices"] if c["finish_reason"]]
    assert sorted(ends) == [0, 1, 2, 3]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert "usage" not in chunks[-1]


@pytest.mark.parametrize("continuous", [False, True])
def test_usage_in_streams(toy: Serving, continuous: bool) -> None:
    options = {"include_usage": True, "continuous_usage_stats": continuous}
    body = {"prompt": [40] * 10, "max_tokens": 3, "stream": True, "stream_options": options}
    *chunks, last = events(toy.post(PATH, body).text)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 3
    seen = [chunk["usage"] and chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert seen == ([1, 2, 3, 3] if continuous else [None] * 4)


def test_what_clients_send_in_vain(toy: Serving) -> None:
    harmless = {"user": "me", "suffix": None, "logit_bias": None, "best_of": 1, "seed": None}
    response = toy.post(PATH, {"prompt": "a", **harmless})
    assert response.status_code == 200
    assert "x-phloem-ignored" not in response.headers
    odd = {"prompt": "a", "reasoning_effort": "low", "new\nfield": 1, "nothing": None}
    assert toy.post(PATH, odd).headers["x-phloem-ignored"] == "reasoning_effort,new%0Afield"


@pytest.mark.parametrize(
    "body",
    [{"best_of": 3, "n": 2}, {"suffix": "end"}, {"guided_json": {}, "guided_regex": "a"}],
)
def test_refused_fields_are_named(toy: Serving, body: dict[str, object]) -> None:
    response = toy.post(PATH, {"prompt": "a", **body})
    assert response.status_code == 400
    assert error_of(response.content)["param"] in body


def test_logprobs_are_finite_json(toy: Serving) -> None:
    answer = toy.post(PATH, {"prompt": "abc", "logprobs": 20, "max_tokens": 4}).json()
    scores = answer["choices"][0]["logprobs"]
    assert all(math.isfinite(value) for value in scores["token_logprobs"])
    assert all(len(top) >= 1 for top in scores["top_logprobs"])


@pytest.mark.parametrize(
    ("path", "prompt"),
    [
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ],
)
def test_what_the_cache_and_the_scheduler_are_told(
    toy: Serving, path: str, prompt: dict[str, object]
) -> None:
    routing = {"priority": 3, "extra_key": "tenant", "cache_salt": "salt"}
    routing |= {"pin_ttl": 60, "program": "p1", "calls_left": 2}
    response = toy.post(path, {**prompt, **routing, "max_tokens": 1})
    assert response.status_code == 200
    assert "x-phloem-ignored" not in response.headers
    request = toy.engine.added[-1]
    assert {name: getattr(request, name) for name in routing} == routing
    refused = toy.post(path, {**prompt, "calls_left": -1})
    assert error_of(refused.content)["param"] == "calls_left"
