"""``validate``: every limit, on both sides."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import GenerateRequest, ModelInfo, SamplingParams
from phloem.runtime.validation import validate

INFO = ModelInfo(
    name="m",
    path="m",
    architecture="a",
    context_length=100,
    max_request_tokens=80,
    vocab_size=50,
    eos_token_ids=(2,),
    dtype="float32",
    device="cpu",
)


def check(info: ModelInfo = INFO, **fields: object) -> None:
    own = {k: fields.pop(k) for k in list(fields) if k in GenerateRequest.__struct_fields__}
    sampling = SamplingParams(**{"max_new_tokens": 10, **fields})  # type: ignore[arg-type]
    request = GenerateRequest(
        **{"rid": "r", "input_ids": [1, 2, 3], "sampling": sampling, **own}  # type: ignore[arg-type]
    )
    validate(request, info)


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"temperature": 100.0},
        {"top_p": 1},
        {"top_p": 1e-9},
        {"top_k": -1},
        {"top_k": 1},
        {"top_k": 10**6},
        {"min_p": 0},
        {"min_p": 1},
        {"frequency_penalty": -2, "presence_penalty": 2},
        {"repetition_penalty": 2},
        {"seed": -(2**63)},
        {"seed": 2**63 - 1},
        {"n": 128},
        {"max_new_tokens": 77},
        {"max_new_tokens": 0},
        {"max_new_tokens": None},
        {"max_new_tokens": None, "min_new_tokens": 77},
        {"input_ids": [0] * 80, "max_new_tokens": 0},
        {"input_ids": [0] * 79, "max_new_tokens": None},
        {"stop": ("a",) * 32},
        {"stop_regex": ("a+b",)},
        {"stop_token_ids": (0, 49)},
        {"logit_bias": {0: -100, 49: 100}},
        {"logprob_start": 0},
        {"logprob_start": 3},
        {"top_logprobs": 20},
        {"token_ids_logprob": (0, 49)},
        {"rid": "x" * 256},
        {"priority": -(2**31)},
        {"pin_ttl": 3600},
        {"calls_left": 0},
        {"calls_left": 10_000},
        {"program": "x" * 256},
    ],
)
def test_limits_are_inclusive(fields: dict[str, object]) -> None:
    check(**fields)


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("temperature", {"temperature": -1e-9}),
        ("temperature", {"temperature": math.nan}),
        ("temperature", {"temperature": math.inf}),
        ("temperature", {"temperature": "hot"}),
        ("temperature", {"temperature": True}),
        ("top_p", {"top_p": 0}),
        ("top_p", {"top_p": 1.0001}),
        ("top_k", {"top_k": 0}),
        ("top_k", {"top_k": -2}),
        ("top_k", {"top_k": 1.5}),
        ("min_p", {"min_p": 1.1}),
        ("frequency_penalty", {"frequency_penalty": 2.1}),
        ("presence_penalty", {"presence_penalty": -2.1}),
        ("repetition_penalty", {"repetition_penalty": 0}),
        ("seed", {"seed": 2**63}),
        ("n", {"n": 0}),
        ("n", {"n": 129}),
        ("max_new_tokens", {"max_new_tokens": -1}),
        ("max_new_tokens", {"max_new_tokens": 78}),
        ("min_new_tokens", {"min_new_tokens": -1}),
        ("min_new_tokens", {"min_new_tokens": 11}),
        ("min_new_tokens", {"min_new_tokens": 78, "max_new_tokens": None}),
        ("input_ids", {"input_ids": []}),
        ("input_ids", {"input_ids": [50]}),
        ("input_ids", {"input_ids": [-1]}),
        ("input_ids", {"input_ids": [2**70]}),
        ("input_ids", {"input_ids": ["a"]}),
        ("input_ids", {"input_ids": [0] * 80, "max_new_tokens": 1}),
        ("input_ids", {"input_ids": [0] * 80, "max_new_tokens": None}),
        ("input_ids", {"input_ids": [0] * 81, "max_new_tokens": 0}),
        ("stop", {"stop": ("a",) * 33}),
        ("stop", {"stop": ("",)}),
        ("stop", {"stop": ("\ud800",)}),
        ("stop_regex", {"stop_regex": ("a",) * 33}),
        ("stop_regex", {"stop_regex": ("(",)}),
        ("stop_regex", {"stop_regex": ("a*",)}),
        ("stop_token_ids", {"stop_token_ids": (50,)}),
        ("logit_bias", {"logit_bias": {50: 1}}),
        ("logit_bias", {"logit_bias": {1: 100.1}}),
        ("logit_bias", {"logit_bias": {1: math.nan}}),
        ("logprob_start", {"logprob_start": -1}),
        ("logprob_start", {"logprob_start": 4}),
        ("top_logprobs", {"top_logprobs": 21}),
        ("token_ids_logprob", {"token_ids_logprob": (50,)}),
        ("token_ids_logprob", {"token_ids_logprob": (1,) * 1025}),
        ("rid", {"rid": ""}),
        ("rid", {"rid": "x" * 257}),
        ("rid", {"rid": "\ud800"}),
        ("cache_salt", {"cache_salt": "x" * 257}),
        ("priority", {"priority": 2**31}),
        ("pin_ttl", {"pin_ttl": -1}),
        ("pin_ttl", {"pin_ttl": 3600.5}),
        ("calls_left", {"calls_left": -1}),
        ("calls_left", {"calls_left": 10_001}),
        ("program", {"program": "x" * 257}),
    ],
)
def test_what_is_over_is_named(param: str, fields: dict[str, object]) -> None:
    with pytest.raises(RequestError) as refused:
        check(**fields)
    assert refused.value.param == param
    assert param in refused.value.message


def test_the_smaller_of_context_and_cache_counts() -> None:
    with pytest.raises(RequestError, match=r"KV cache's capacity of 80 has room for 77") as over:
        check(max_new_tokens=90)
    assert over.value.code == "context_length_exceeded"
    roomy = replace(INFO, max_request_tokens=500)
    with pytest.raises(RequestError, match=r"context length of 100 has room for 97"):
        check(roomy, max_new_tokens=98)


@given(
    st.lists(st.integers(-3, 60), max_size=90),
    st.none() | st.integers(-3, 120),
    st.integers(-3, 120),
)
def test_what_passes_fits(ids: list[int], wanted: int | None, least: int) -> None:
    try:
        check(input_ids=ids, max_new_tokens=wanted, min_new_tokens=least)
    except RequestError:
        return
    assert ids
    assert all(0 <= token < 50 for token in ids)
    most = 80 - len(ids) if wanted is None else wanted
    assert 0 <= least <= most
    assert len(ids) + most <= 80
