"""From the fields that completions and chat share to a batch for the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, GenerateRequest
from phloem.runtime.sampling.fields import constraint
from phloem.runtime.server.collect import Batch
from phloem.runtime.server.decode import Decoded
from phloem.runtime.server.fields import (
    ROUTING,
    constraints,
    given,
    sampling_params,
    the_one,
)
from phloem.runtime.server.openai_types import OpenAIRequest, ResponseFormat
from phloem.runtime.server.service import Service


@dataclass(frozen=True, slots=True)
class Scores:
    """Which log-probabilities are wanted; the fields are those of GenerateRequest."""

    return_logprob: bool = False
    logprob_start: int | None = None
    top_logprobs: int = 0


def response_constraint(asked: ResponseFormat | None) -> dict[str, Constraint]:
    """The constraint that ``response_format`` sets, if any, by the field's name."""
    if asked is None or asked.type == "text":
        return {}
    if asked.type == "json_object":
        return {"response_format": Constraint(kind="json_object")}
    if asked.json_schema is None:
        raise RequestError(
            "`response_format.json_schema` is required for the type json_schema",
            param="response_format.json_schema",
        )
    return {"response_format": constraint("json_schema", asked.json_schema.schema)}


def make_batch(
    service: Service,
    decoded: Decoded[Any],
    prompts: Sequence[list[int]],
    *,
    rid: str,
    max_tokens: int | None,
    default_tokens: int | None,
    scores: Scores,
    names: Mapping[str, str],
) -> Batch:
    """One request for each prompt; ``names`` are the API's names of engine fields.

    Without ``max_tokens`` up to ``default_tokens`` are generated, or, without that either, as
    many as fit.
    """
    fields: OpenAIRequest = decoded.value
    n = 1 if fields.n is None else fields.n
    service.check_size(len(prompts) * n, "n" if len(prompts) == 1 else "prompt")
    field, held_to = the_one(constraints(fields) | response_constraint(fields.response_format))
    sampling = sampling_params(
        fields,
        max_new_tokens=max_tokens,
        min_new_tokens=fields.min_tokens,
        constraint=held_to,
    )
    rids = [rid] if len(prompts) == 1 else [f"{rid}_{number}" for number in range(len(prompts))]
    requests = [
        GenerateRequest(
            rid=each,
            input_ids=prompt,
            sampling=service.with_default_length(sampling, default_tokens, len(prompt)),
            return_logprob=scores.return_logprob,
            logprob_start=scores.logprob_start,
            top_logprobs=scores.top_logprobs,
            **given(fields, ROUTING),
        )
        for each, prompt in zip(rids, prompts, strict=True)
    ]
    return Batch(requests, {**names, "constraint": field}, decoded.arrived)
