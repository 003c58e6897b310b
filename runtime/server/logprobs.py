"""Log-probabilities in the shapes of the APIs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from phloem.runtime.protocol import TokenLogprob

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer

LOWEST = -9999.0
"""Stands for minus infinity, which JSON cannot hold."""


def finite(logprob: float) -> float:
    return max(logprob, LOWEST)


def shown_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """A token's bytes; those of its name if it is a special one."""
    return tokenizer.piece(token, skip_special_tokens=False)


# SGLang's: triples of log-probability, token id and text.

Triple = tuple[float | None, int, str | None]


def triple(logprob: float | None, token: int, tokenizer: Tokenizer | None) -> Triple:
    """``tokenizer`` None leaves the text out."""
    text = None if tokenizer is None else tokenizer.token_text(token)
    return (None if logprob is None else finite(logprob), token, text)


def token_triples(entries: Iterable[TokenLogprob], tokenizer: Tokenizer | None) -> list[Triple]:
    return [triple(entry.logprob, entry.token_id, tokenizer) for entry in entries]


def pair_triples(
    alternatives: Iterable[Sequence[tuple[int, float]]], tokenizer: Tokenizer | None
) -> list[list[Triple] | None]:
    """A list for each token; None where nothing was predicted."""
    return [
        [triple(logprob, token, tokenizer) for token, logprob in pairs] or None
        for pairs in alternatives
    ]


# OpenAI's chat: tokens with their bytes.


class ChatTopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]


class ChatTokenLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[ChatTopLogprob]


class ChatLogprobs(msgspec.Struct):
    content: list[ChatTokenLogprob]
    refusal: None = None


def chat_logprobs(entries: Iterable[TokenLogprob], tokenizer: Tokenizer) -> ChatLogprobs:
    def top(token: int, logprob: float) -> ChatTopLogprob:
        raw = shown_bytes(tokenizer, token)
        return ChatTopLogprob(raw.decode(errors="replace"), finite(logprob), list(raw))

    def one(entry: TokenLogprob) -> ChatTokenLogprob:
        own = top(entry.token_id, entry.logprob or 0.0)
        alternatives = [top(*pair) for pair in entry.top]
        return ChatTokenLogprob(own.token, own.logprob, own.bytes, alternatives)

    return ChatLogprobs([one(entry) for entry in entries])


# OpenAI's completions: parallel lists, with offsets into the text.


class CompletionLogprobs(msgspec.Struct):
    """Parallel lists, one item for each token; None where nothing was predicted."""

    text_offset: list[int] = []
    token_logprobs: list[float | None] = []
    tokens: list[str] = []
    top_logprobs: list[dict[str, float] | None] = []

    def extend(self, other: CompletionLogprobs) -> None:
        for name in self.__struct_fields__:
            getattr(self, name).extend(getattr(other, name))


class CompletionLogprobWriter:
    """Writes one sequence's log-probabilities, prompt first, counting offsets into its text."""

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special_tokens
        self._position = 0

    def prompt(self, entries: Iterable[TokenLogprob], text: str) -> CompletionLogprobs:
        """Of the prompt's tokens; ``text`` is the prompt as it is echoed."""
        written = CompletionLogprobs()
        for entry in entries:
            raw = shown_bytes(self._tokenizer, entry.token_id)
            self._append(written, entry, raw, self._echoed(entry.token_id, raw, text))
        self._position = len(text)
        return written

    def _echoed(self, token: int, raw: bytes, text: str) -> bytes:
        """The part of a prompt token that stands in the text.

        Special tokens that were added to the text, and the space that some tokenizers put
        before it, do not.
        """
        if self._special(token) and not text.startswith(raw.decode(), self._position):
            return b""
        return raw.removeprefix(b" ") if not self._position and text[:1] != " " else raw

    def output(self, entries: Iterable[TokenLogprob]) -> CompletionLogprobs:
        """Of generated tokens."""
        written = CompletionLogprobs()
        for entry in entries:
            raw = shown_bytes(self._tokenizer, entry.token_id)
            hidden = self._skip_special and self._special(entry.token_id)
            self._append(written, entry, raw, b"" if hidden else raw)
        return written

    def _special(self, token: int) -> bool:
        return token in self._tokenizer.special_ids

    def _append(
        self, written: CompletionLogprobs, entry: TokenLogprob, raw: bytes, visible: bytes
    ) -> None:
        token = completion_token(raw)
        written.tokens.append(token)
        written.text_offset.append(self._advance(visible))
        if entry.logprob is None:
            written.token_logprobs.append(None)
            written.top_logprobs.append(None)
            return
        written.token_logprobs.append(finite(entry.logprob))
        top: dict[str, float] = {}
        for other, logprob in entry.top:
            text = completion_token(shown_bytes(self._tokenizer, other))
            top.setdefault(text, finite(logprob))
        top.setdefault(token, finite(entry.logprob))
        written.top_logprobs.append(top)

    def _advance(self, visible: bytes) -> int:
        """Where a token begins; a character that several tokens share belongs to all of them."""
        inside = bool(visible) and _continues(visible[0]) and self._position > 0
        offset = self._position - inside
        self._position += sum(not _continues(byte) for byte in visible)
        return offset


def _continues(byte: int) -> bool:
    """Whether a UTF-8 byte continues a character."""
    return byte & 0xC0 == 0x80


def completion_token(raw: bytes) -> str:
    """A token as text; bytes that are no text are written out, as OpenAI does."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
