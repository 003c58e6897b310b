"""Log-probabilities in the shape of OpenAI's completions: parallel lists, with offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from phloem.runtime.protocol import TokenLogprob
from phloem.runtime.server.logprobs import finite, shown_bytes

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer


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
