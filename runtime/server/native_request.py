"""From SGLang's native body to a batch for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import GenerateRequest, SamplingParams
from phloem.runtime.server.collect import Batch
from phloem.runtime.server.decode import Decoded, field_error
from phloem.runtime.server.fields import (
    ROUTING,
    constraints,
    given,
    new_id,
    sampling_params,
    the_one,
)
from phloem.runtime.server.native_types import GenerateBody, NativeSampling
from phloem.runtime.server.prompts import Prompt, split, token_ids
from phloem.runtime.server.service import Service
from phloem.runtime.server.sessions import continuation
from phloem.runtime.sessions import Continuation

DEFAULT_TOKENS = 128
NAMES = {
    "deadline": "timeout",
    "logprob_start": "logprob_start_len",
    "top_logprobs": "top_logprobs_num",
}


async def make_batch(service: Service, decoded: Decoded[GenerateBody]) -> Batch:
    """One request for each prompt.

    Raises:
        RequestError: there is not exactly one kind of prompt, lists differ in length, a
            sampling parameter is unknown or of the wrong type, or a session or turn is unknown.
    """
    body = decoded.value
    field, prompt = _prompt(body)
    prompts = split(prompt, field)
    count = len(prompts)
    service.check_size(count, field)
    turn = _turn(service, body, field)
    sampled = [_sampling(*each) for each in _sampling_dicts(body, count)]
    service.check_size(sum(max(sampling.n, 0) for _, sampling in sampled), "n")
    requests = [
        GenerateRequest(
            rid=rid,
            input_ids=ids,
            sampling=service.with_default_length(sampling, DEFAULT_TOKENS, len(ids)),
            stream=bool(body.stream),
            deadline=body.timeout,
            **_scores(body),
            **given(body, ROUTING),
        )
        for rid, ids, (_, sampling) in zip(
            _rids(body.rid, count), await _token_ids(service, prompts, turn), sampled, strict=True
        )
    ]
    names = {**NAMES, "input_ids": field, "constraint": sampled[0][0]}
    return Batch(requests, names, decoded.arrived, turn)


def _prompt(body: GenerateBody) -> tuple[str, Any]:
    if (body.text is None) == (body.input_ids is None):
        raise RequestError("exactly one of `text` and `input_ids` is required", param="text")
    return ("text", body.text) if body.text is not None else ("input_ids", body.input_ids)


def is_single(body: GenerateBody) -> bool:
    """Whether one prompt was sent as itself, not in a list."""
    if body.input_ids is None:
        return isinstance(body.text, str)
    return isinstance(body.input_ids[0], int)


def _turn(service: Service, body: GenerateBody, field: str) -> Continuation | None:
    """Where the prompt goes on, if it belongs to a session."""
    if body.session_params is None:
        return None
    if not is_single(body):
        raise RequestError(
            f"`{field}` must be one prompt, not a list, with `session_params`", param=field
        )
    return continuation(service, body.session_params)


async def _token_ids(
    service: Service, prompts: list[Prompt], turn: Continuation | None
) -> list[list[int]]:
    """Each prompt's token ids, behind the history of its turn; special ones begin a history."""
    history = [] if turn is None else turn.history()
    prompt_ids = await token_ids(service, prompts, special=not history)
    return [history + ids for ids in prompt_ids] if history else prompt_ids


def _rids(rid: str | list[str] | None, count: int) -> list[str]:
    if isinstance(rid, list):
        _check_count("rid", rid, count)
        return rid
    if count == 1:
        return [new_id() if rid is None else rid]
    base = new_id() if rid is None else rid
    return [f"{base}_{number}" for number in range(count)]


def _sampling_dicts(body: GenerateBody, count: int) -> list[tuple[str, Mapping[str, Any]]]:
    """For each prompt, its sampling parameters and where they stand in the body."""
    params = body.sampling_params
    if not isinstance(params, list):
        return [("sampling_params", params or {})] * count
    _check_count("sampling_params", params, count)
    return [(f"sampling_params[{number}]", each) for number, each in enumerate(params)]


def _check_count(name: str, items: list[Any], count: int) -> None:
    if len(items) != count:
        raise RequestError(
            f"`{name}` has {len(items)} items for {count} prompts; it needs one for each",
            param=name,
        )


def _sampling(place: str, params: Mapping[str, Any]) -> tuple[str, SamplingParams]:
    """The parameters, and the field that constrains the output."""
    given_params = {name: value for name, value in params.items() if value is not None}
    try:
        fields = msgspec.convert(given_params, NativeSampling, str_keys=True)
    except msgspec.ValidationError as error:
        raise field_error(error, within=place) from None
    if fields.seed is None:
        fields.seed = fields.sampling_seed
    field, constraint = the_one(constraints(fields))
    return field, sampling_params(
        fields,
        max_new_tokens=fields.max_new_tokens,
        min_new_tokens=fields.min_new_tokens,
        constraint=constraint,
    )


def _scores(body: GenerateBody) -> dict[str, Any]:
    """The fields of GenerateRequest that ask for log-probabilities."""
    if not body.return_logprob:
        return {}
    start = body.logprob_start_len
    return {
        "return_logprob": True,
        "logprob_start": None if start == -1 else start,
        "top_logprobs": body.top_logprobs_num or 0,
        "token_ids_logprob": tuple(body.token_ids_logprob or ()),
    }
