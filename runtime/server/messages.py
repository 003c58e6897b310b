"""From chat messages to a prompt."""

from __future__ import annotations

from typing import Any

from phloem.runtime.errors import RequestError
from phloem.runtime.server.openai_types import ChatMessage, ChatRequest, ContentPart
from phloem.runtime.server.service import Service

ROLE_OF = {"developer": "system"}
"""Roles that templates do not know, and what stands for them."""

RESERVED = frozenset(
    {"messages", "tools", "add_generation_prompt", "continue_final_message", "self"}
)
"""Names that ``chat_template_kwargs`` must leave alone."""


async def prompt_ids(service: Service, body: ChatRequest) -> list[int]:
    """Token ids of the conversation as the model's chat template lays it out.

    Raises:
        RequestError: a message is not text, or the template refuses the conversation.
    """
    if not body.messages:
        raise RequestError("`messages` is empty", param="messages")
    going_on = bool(body.continue_final_message)
    _check_end(body, going_on)
    extra = body.chat_template_kwargs or {}
    if reserved := RESERVED & extra.keys():
        place = f"chat_template_kwargs.{min(reserved)}"
        raise RequestError(f"`{place}` is set by other fields", param=place)
    add_prompt = body.add_generation_prompt
    text = service.client.tokenizer.apply_chat_template(
        [_plain(number, message) for number, message in enumerate(body.messages)],
        add_generation_prompt=not going_on if add_prompt is None else add_prompt,
        continue_final_message=going_on,
        **extra,
    )
    [ids] = await service.encode([text], special=False)
    return ids


def _check_end(body: ChatRequest, going_on: bool) -> None:
    if going_on and body.add_generation_prompt:
        raise RequestError(
            "`continue_final_message` and `add_generation_prompt` exclude each other",
            param="continue_final_message",
        )
    if going_on and body.messages[-1].role != "assistant":
        raise RequestError(
            "`continue_final_message` needs a last message of the role assistant",
            param="continue_final_message",
        )


def _plain(number: int, message: ChatMessage) -> dict[str, Any]:
    """The message as templates read it."""
    place = f"messages[{number}].content"
    content = message.content
    if content is None and not message.tool_calls:
        raise RequestError(f"`{place}` must not be null", param=place)
    if isinstance(content, list):
        content = "\n".join(_text(part, f"{place}[{at}]") for at, part in enumerate(content))
    plain: dict[str, Any] = {
        "role": ROLE_OF.get(message.role, message.role),
        "content": content or "",
    }
    for name in ("name", "tool_calls", "tool_call_id", "reasoning_content"):
        if (value := getattr(message, name)) is not None:
            plain[name] = value
    return plain


def _text(part: ContentPart, place: str) -> str:
    if part.type != "text":
        raise RequestError(
            f"`{place}` is of the type {part.type!r}; only text is supported",
            param=place,
            code="unsupported_content",
        )
    if part.text is None:
        raise RequestError(f"`{place}.text` is required", param=f"{place}.text")
    return part.text
