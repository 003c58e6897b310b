"""Requests from what a script gives: text or token ids, and loose sampling fields."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import GenerateRequest, SamplingParams
from phloem.runtime.sampling.fields import sampling_params
from phloem.runtime.text.tokenizer import Tokenizer

Prompt = str | Sequence[int]
Sampling = SamplingParams | Mapping[str, Any] | None


def token_ids(tokenizer: Tokenizer, prompt: Prompt, *, special: bool = True) -> list[int]:
    """A prompt's token ids; ``special`` adds to a text the tokens that begin a sequence.

    Raises:
        RequestError: it is neither text nor token ids.
    """
    if isinstance(prompt, str):
        return tokenizer.encode(prompt, add_special_tokens=special)
    if isinstance(prompt, Sequence):
        ids = [token for token in prompt if isinstance(token, int)]
        if len(ids) == len(prompt):
            return ids
    raise RequestError("a prompt is text or a list of token ids", param="prompt")


def make_request(
    input_ids: list[int], sampling: Sampling = None, *, stream: bool = False
) -> GenerateRequest:
    """A request with an id of its own.

    Raises:
        RequestError: a sampling parameter is unknown or of the wrong type.
    """
    params = sampling if isinstance(sampling, SamplingParams) else sampling_params(sampling)
    rid = uuid.uuid4().hex
    return GenerateRequest(rid=rid, input_ids=input_ids, sampling=params, stream=stream)
