"""SGLang's native request and response bodies."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from phloem.runtime.server.fields import SamplingFields
from phloem.runtime.server.session_types import SessionParams

REFUSED = frozenset(
    {
        "audio_data",
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "custom_logit_processor",
        "image_data",
        "input_embeds",
        "lora_id",
        "lora_path",
        "return_entropy",
        "return_hidden_states",
        "return_routed_experts",
        "video_data",
    }
)
"""Fields of SGLang that would change the output or the answer and are not served."""


class NativeSampling(SamplingFields, kw_only=True, forbid_unknown_fields=True):
    """``sampling_params``; ``sampling_seed`` is another name of ``seed``."""

    max_new_tokens: int | None = None
    min_new_tokens: int | None = None
    sampling_seed: int | None = None


class GenerateBody(msgspec.Struct, kw_only=True):
    """``POST /generate``: one prompt, or a list of them for a batch.

    ``sampling_params`` is one for all prompts or a list of one for each; its fields are those of
    NativeSampling. ``session_params`` takes one prompt and one sequence.
    """

    text: str | list[str] | None = None
    input_ids: list[int | list[int]] | None = None
    sampling_params: dict[str, Any] | list[dict[str, Any]] | None = None
    rid: str | list[str] | None = None
    stream: bool | None = None
    return_logprob: bool | None = None
    logprob_start_len: int | None = None
    top_logprobs_num: int | None = None
    token_ids_logprob: list[int] | None = None
    return_text_in_logprobs: bool | None = None
    priority: int | None = None
    timeout: float | None = None
    extra_key: str | None = None
    cache_salt: str | None = None
    pin_ttl: float | None = None
    program: str | None = None
    calls_left: int | None = None
    session_params: SessionParams | None = None


Triple = tuple[float | None, int, str | None]
"""Log-probability, token id and, if asked for, the token's text."""

TopTriples = list[list[Triple] | None]
"""A list for each token; None where nothing was predicted."""


class FinishReason(msgspec.Struct):
    """``matched`` comes with a stop that something matched, ``length`` with an end by length."""

    type: Literal["stop", "length", "abort", "error"]
    matched: str | int | UnsetType = UNSET
    length: int | UnsetType = UNSET


class MetaInfo(msgspec.Struct, kw_only=True):
    """Fields of log-probabilities come if they were asked for."""

    id: str
    finish_reason: FinishReason | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    num_retractions: int
    e2e_latency: float | UnsetType = UNSET
    input_token_logprobs: list[Triple] | UnsetType = UNSET
    output_token_logprobs: list[Triple] | UnsetType = UNSET
    input_top_logprobs: TopTriples | UnsetType = UNSET
    output_top_logprobs: TopTriples | UnsetType = UNSET
    input_token_ids_logprobs: TopTriples | UnsetType = UNSET
    output_token_ids_logprobs: TopTriples | UnsetType = UNSET


class GenerateResult(msgspec.Struct, kw_only=True):
    """One sequence; in streams ``text`` and all lists are what has come so far."""

    text: str
    output_ids: list[int]
    meta_info: MetaInfo
    index: int | UnsetType = UNSET
