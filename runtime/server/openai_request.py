"""From the fields that completions and chat share to a batch for the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, GenerateRequest
from phloem.runtime.sampling.fields import constraint
from phloem.runtime.server.collect import Batch
from phloem.runtime.server.fields import (
    ROUTING,
    constraints,
    given,
    sampling_params,
    the_one,
)
from phloem.runtime.server.openai_types import OpenAIRequest, ResponseFormat
from phloem.runtime.server.service import Service


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
    fields: OpenAIRequest,
    prompts: Sequence[list[int]],
    *,
    rid: str,
    max_tokens: int | None,
    default_tokens: int | None,
    scores: Mapping[str, Any],
    names: Mapping[str, str],
    arrived: float,
) -> Batch:
    """One request for each prompt.

    Without ``max_tokens`` up to ``default_tokens`` are generated, or, without that either, as
    many as fit. ``scores`` are fields of GenerateRequest; ``names`` and ``arrived`` as in Batch.
    """
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
            stream=bool(fields.stream),
            deadline=fields.timeout,
            **scores,
            **given(fields, ROUTING),
        )
        for each, prompt in zip(rids, prompts, strict=True)
    ]
    return Batch(requests, {**names, "constraint": field, "deadline": "timeout"}, arrived)
