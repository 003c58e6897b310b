"""``POST /generate`` in SGLang's shapes."""

from __future__ import annotations

from itertools import pairwise

from conftest import Serving, serving
from sse_reader import events

from phloem.runtime.protocol import GenerateRequest
from phloem.runtime.text.tokenizer import Tokenizer

TEXT = "Hello world, phloem"


def params(**fields: object) -> dict[str, object]:
    return {"max_new_tokens": 8, **fields}


def last_request(toy: Serving, rid: str) -> GenerateRequest:
    return next(each for each in toy.engine.added if each.rid == rid)


def test_text_and_ids_give_the_same_result(toy: Serving, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    by_text = toy.post("/generate", {"text": TEXT, "sampling_params": params()}).json()
    by_ids = toy.post("/generate", {"input_ids": ids, "sampling_params": params()}).json()
    assert by_text["output_ids"] == by_ids["output_ids"] == ids[:8]
    assert by_text["text"] == tokenizer.decode(ids[:8])


def test_meta_info(toy: Serving, tokenizer: Tokenizer) -> None:
    body = {"text": TEXT, "rid": "meta", "sampling_params": params(stop="wor")}
    result = toy.post("/generate", body).json()
    meta = result["meta_info"]
    assert meta["id"] == "meta"
    assert meta["finish_reason"] == {"type": "stop", "matched": "wor"}
    assert meta["prompt_tokens"] == len(tokenizer.encode(TEXT))
    assert meta["completion_tokens"] == len(result["output_ids"])
    assert meta["cached_tokens"] == meta["prompt_tokens"] // 2
    assert meta["e2e_latency"] > 0
    assert result["text"] == "Hello "
    assert "input_token_logprobs" not in meta


def test_a_list_is_a_batch_even_of_one(toy: Serving) -> None:
    alone = toy.post("/generate", {"text": [TEXT], "sampling_params": params()}).json()
    assert isinstance(alone, list)
    two = toy.post(
        "/generate",
        {
            "input_ids": [[40, 41], [50, 51, 52]],
            "rid": ["one", "two"],
            "sampling_params": [params(max_new_tokens=2), params(max_new_tokens=3)],
        },
    ).json()
    assert [each["output_ids"] for each in two] == [[40, 41], [50, 51, 52]]
    assert [each["meta_info"]["id"] for each in two] == ["one", "two"]


def test_n_samples_of_each_prompt_in_order(toy: Serving) -> None:
    body = {"input_ids": [[40, 41, 42], [50, 51]], "sampling_params": params(n=2, max_new_tokens=1)}
    results = toy.post("/generate", body).json()
    assert [each["output_ids"] for each in results] == [[40], [41], [50], [51]]
    single = toy.post("/generate", {**body, "input_ids": [40, 41, 42]}).json()
    assert [each["output_ids"] for each in single] == [[40], [41]]


def test_stream_is_cumulative(toy: Serving) -> None:
    body = {"text": TEXT, "sampling_params": params(), "stream": True}
    response = toy.post("/generate", body)
    assert response.headers["content-type"].startswith("text/event-stream")
    chunks = events(response.text)
    whole = toy.post("/generate", {**body, "stream": False}).json()
    assert len(chunks) == 8
    for before, after in pairwise(chunks):
        assert after["text"].startswith(before["text"])
        assert after["output_ids"][:-1] == before["output_ids"]
        assert before["meta_info"]["finish_reason"] is None
    assert chunks[-1]["text"] == whole["text"]
    assert chunks[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 8}
    assert "index" not in chunks[0]


def test_stream_of_a_batch_carries_the_index(toy: Serving) -> None:
    body = {
        "input_ids": [[40, 41], [50, 51]],
        "sampling_params": params(n=2, max_new_tokens=3),
        "stream": True,
    }
    last = {chunk["index"]: chunk for chunk in events(toy.post("/generate", body).text)}
    assert {index: chunk["output_ids"] for index, chunk in last.items()} == {
        0: [40, 41, 40],
        1: [41, 40, 41],
        2: [50, 51, 50],
        3: [51, 50, 51],
    }


def test_logprobs(toy: Serving) -> None:
    body = {
        "input_ids": [40, 41, 42],
        "sampling_params": params(max_new_tokens=2, n=2),
        "return_logprob": True,
        "logprob_start_len": 0,
        "top_logprobs_num": 2,
        "token_ids_logprob": [7],
        "return_text_in_logprobs": True,
    }
    for result in toy.post("/generate", body).json():
        meta = result["meta_info"]
        assert [entry[1] for entry in meta["input_token_logprobs"]] == [40, 41, 42]
        assert meta["input_token_logprobs"][0][0] is None
        assert meta["input_top_logprobs"][0] is None
        assert [entry[1] for entry in meta["output_token_logprobs"]] == result["output_ids"]
        assert [len(top) for top in meta["output_top_logprobs"]] == [2, 2]
        assert [top[0][1] for top in meta["output_token_ids_logprobs"]] == [7, 7]
        assert all(isinstance(entry[2], str) for entry in meta["output_token_logprobs"])


def test_logprobs_of_the_output_alone(toy: Serving) -> None:
    body = {"input_ids": [40, 41], "sampling_params": params(), "return_logprob": True}
    for start in ({}, {"logprob_start_len": -1}):
        meta = toy.post("/generate", {**body, **start}).json()["meta_info"]
        assert meta["input_token_logprobs"] == []
        assert len(meta["output_token_logprobs"]) == 8
        assert meta["output_token_logprobs"][0][2] is None
        assert "output_top_logprobs" not in meta


def test_no_tokens_only_caches(toy: Serving) -> None:
    result = toy.post("/generate", {"text": TEXT, "sampling_params": params(max_new_tokens=0)})
    assert result.json()["output_ids"] == []
    assert result.json()["meta_info"]["finish_reason"] == {"type": "length", "length": 0}


def test_every_sampling_field_arrives(toy: Serving) -> None:
    sampling = {
        "max_new_tokens": 3,
        "min_new_tokens": 1,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7,
        "min_p": 0.1,
        "frequency_penalty": 0.25,
        "presence_penalty": -0.5,
        "repetition_penalty": 1.5,
        "logit_bias": {"5": 1.5},
        "stop": ["zzz"],
        "stop_token_ids": [9],
        "stop_regex": "q+z",
        "ignore_eos": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": True,
        "no_stop_trim": True,
        "sampling_seed": 11,
        "n": 2,
    }
    body = {
        "text": TEXT,
        "rid": "every",
        "sampling_params": sampling,
        "priority": 3,
        "extra_key": "tenant",
        "cache_salt": "salt",
        "pin_ttl": 60,
        "program": "p1",
        "calls_left": 2,
    }
    assert toy.post("/generate", body).status_code == 200
    request = last_request(toy, "every")
    got = request.sampling
    for name in sampling.keys() - {
        "logit_bias",
        "stop",
        "stop_token_ids",
        "stop_regex",
        "spaces_between_special_tokens",
        "sampling_seed",
    }:
        assert getattr(got, name) == sampling[name], name
    assert (got.logit_bias, got.stop, got.stop_token_ids) == ({5: 1.5}, ("zzz",), (9,))
    assert (got.stop_regex, got.seed) == (("q+z",), 11)
    assert (request.priority, request.extra_key) == (3, "tenant")
    assert (request.cache_salt, request.program) == ("salt", "p1")
    assert (request.pin_ttl, request.calls_left) == (60, 2)


def test_constraints_arrive(toy: Serving) -> None:
    given = {
        "json_schema": ({"type": "object"}, "json_schema", '{"type": "object"}'),
        "regex": ("[0-9]+", "regex", "[0-9]+"),
        "ebnf": ('root ::= "a"', "ebnf", 'root ::= "a"'),
        "choices": (["yes", "no"], "choice", '["yes", "no"]'),
    }
    for name, (value, kind, text) in given.items():
        body = {"text": TEXT, "rid": name, "sampling_params": params(**{name: value})}
        assert toy.post("/generate", body).status_code == 200
        constraint = last_request(toy, name).sampling.constraint
        assert constraint is not None
        assert (constraint.kind, constraint.text) == (kind, text)


def test_nulls_count_as_absent(toy: Serving) -> None:
    sampling = {"max_new_tokens": 2, "regex": None, "stop": None, "seed": None, "n": None}
    body = {"text": TEXT, "input_ids": None, "rid": None, "sampling_params": sampling}
    body |= {"stream": None, "return_logprob": None, "lora_path": None, "image_data": None}
    response = toy.post("/generate", body)
    assert response.status_code == 200
    assert "x-phloem-ignored" not in response.headers


def test_default_length_fits_the_context(toy: Serving) -> None:
    ids = [40] * (toy.client.info.context_length - 3)
    result = toy.post("/generate", {"input_ids": ids}).json()
    assert len(result["output_ids"]) == 3


def test_batch_ids_come_from_one(toy: Serving) -> None:
    results = toy.post("/generate", {"text": ["a", "b"], "rid": "base"}).json()
    assert [each["meta_info"]["id"] for each in results] == ["base_0", "base_1"]


def test_abort_ends_requests_with_their_reason(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, delay=0.01) as toy:
        body = {"text": "a", "rid": "long", "sampling_params": params(max_new_tokens=2000)}
        with toy.stream("/generate", {**body, "stream": True}) as lines:
            next(lines)
            assert toy.post("/abort_request", {"rid": "long"}).json() == {"aborted": 1}
            ends = [line for line in lines if '"type":"abort"' in line]
        assert len(ends) == 1
        assert toy.post("/abort_request", {"rid": "long"}).json() == {"aborted": 0}
        with toy.stream("/generate", {**body, "stream": True}) as lines:
            next(lines)
            assert toy.post("/abort_request", {"abort_all": True}).json() == {"aborted": 1}
            assert list(lines)[-1] == "data: [DONE]"
