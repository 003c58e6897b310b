"""OpenAI's request and response bodies, with the fields that SGLang and vLLM added."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from phloem.runtime.server.chat_logprobs import ChatLogprobs
from phloem.runtime.server.completion_logprobs import CompletionLogprobs
from phloem.runtime.server.fields import SamplingFields

REFUSED = frozenset(
    {
        "allowed_token_ids",
        "audio",
        "audio_data",
        "bad_words",
        "beam_width",
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "chat_template",
        "custom_logit_processor",
        "custom_params",
        "documents",
        "function_call",
        "functions",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "image_data",
        "include_stop_str_in_output",
        "input_embeds",
        "logits_processors",
        "lora_path",
        "lora_request",
        "mm_processor_kwargs",
        "prediction",
        "prompt_logprobs",
        "return_hidden_states",
        "session_params",
        "structural_tag",
        "structured_outputs",
        "suffix",
        "thinking_token_budget",
        "truncate_prompt_tokens",
        "typical_p",
        "use_beam_search",
        "video_data",
        "web_search_options",
    }
)
"""Fields of the OpenAI API, SGLang and vLLM that would change the output and are not served."""

HARMLESS = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
"""Fields that never change what a model without tools generates."""


class StreamOptions(msgspec.Struct, kw_only=True):
    """``continuous_usage_stats``: usage in every chunk, as with vLLM."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class JsonSchemaFormat(msgspec.Struct, kw_only=True):
    """The output is always held to the schema, whatever ``strict`` says."""

    schema: dict[str, Any] | bool
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, kw_only=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None


class OpenAIRequest(SamplingFields, kw_only=True):
    """What completions and chat have in common."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    response_format: ResponseFormat | None = None
    rid: str | None = None
    priority: int | None = None
    timeout: float | None = None
    extra_key: str | None = None
    cache_salt: str | None = None
    pin_ttl: float | None = None
    program: str | None = None
    calls_left: int | None = None


class CompletionRequest(OpenAIRequest, kw_only=True):
    """``prompt``: a text, its token ids, or a list of either."""

    prompt: str | list[str | int | list[int]]
    echo: bool | None = None
    logprobs: int | None = None
    best_of: int | None = None


class ContentPart(msgspec.Struct, kw_only=True):
    type: str
    text: str | None = None


class ChatMessage(msgspec.Struct, kw_only=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class ChatRequest(OpenAIRequest, kw_only=True):
    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    modalities: list[str] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class PromptTokensDetails(msgspec.Struct):
    cached_tokens: int


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class Head(msgspec.Struct):
    """What all chunks of a stream, and the whole answer, begin with."""

    id: str
    object: str
    created: int
    model: str


class CompletionChoice(msgspec.Struct):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: str | None


class AssistantMessage(msgspec.Struct):
    content: str
    role: str = "assistant"
    refusal: None = None


class ChatChoice(msgspec.Struct):
    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None
    finish_reason: str | None


class CompletionResponse(Head):
    choices: list[CompletionChoice]
    usage: Usage


class ChatResponse(Head):
    choices: list[ChatChoice]
    usage: Usage
