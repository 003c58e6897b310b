"""Log-probabilities in the shape of OpenAI's chat: tokens with their bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from phloem.runtime.protocol import TokenLogprob
from phloem.runtime.server.logprobs import finite, shown_bytes

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer


class ChatTopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]


class ChatTokenLogprob(ChatTopLogprob):
    top_logprobs: list[ChatTopLogprob]


class ChatLogprobs(msgspec.Struct):
    content: list[ChatTokenLogprob]
    refusal: None = None


def chat_logprobs(entries: Iterable[TokenLogprob], tokenizer: Tokenizer) -> ChatLogprobs:
    """The generated tokens' scores."""

    def parts(token: int, logprob: float | None) -> tuple[str, float, list[int]]:
        raw = shown_bytes(tokenizer, token)
        return raw.decode(errors="replace"), finite(logprob or 0.0), list(raw)

    return ChatLogprobs(
        [
            ChatTokenLogprob(
                *parts(entry.token_id, entry.logprob),
                [ChatTopLogprob(*parts(*alternative)) for alternative in entry.top],
            )
            for entry in entries
        ]
    )
