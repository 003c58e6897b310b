"""One interface over the tokenizers of Hugging Face folders and GGUF files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer as FastTokenizer

from phloem.runtime.errors import RequestError
from phloem.runtime.text.chat_template import ChatTemplate, Messages
from phloem.runtime.text.token_bytes import drops_leading_space, token_table


@dataclass(frozen=True, slots=True)
class TokenizerConfig:
    """What a model says about its tokenizer beside the vocabulary.

    Attributes:
        eos_token_ids: any of these ends a generation.
        chat_templates: Jinja source by name; ``default``, and perhaps ``tool_use``.
        template_variables: such as ``bos_token``, the text of that token.
    """

    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    template_variables: Mapping[str, str] = field(default_factory=dict)


class Tokenizer:
    """Text to token ids and back. Immutable and safe to share between threads.

    Decoding joins the tokens' bytes and reads them as UTF-8, with U+FFFD for what is not: exact
    for any token sequence, and the same whether done at once or token by token.

    Raises (when built):
        ModelError: the vocabulary is neither byte-level nor SentencePiece.
    """

    def __init__(self, fast: FastTokenizer, config: TokenizerConfig) -> None:
        self._fast = fast
        self._table = token_table(fast)
        self._templates = {
            name: ChatTemplate(source, config.template_variables)
            for name, source in config.chat_templates.items()
        }
        self.eos_token_ids = config.eos_token_ids
        self.bos_token_id = config.bos_token_id
        self.chat_template: str | None = config.chat_templates.get("default")
        self.special_ids = frozenset(
            token_id for token_id, added in fast.get_added_tokens_decoder().items() if added.special
        )
        self.drops_leading_space = drops_leading_space(fast)

    @property
    def vocab_size(self) -> int:
        """The highest token id, plus one; a model's vocabulary may be padded beyond it."""
        return len(self._table)

    def encode(
        self, text: str, *, add_special_tokens: bool = True, parse_special: bool = True
    ) -> list[int]:
        """Token ids of ``text``.

        ``add_special_tokens`` adds what the model wants around a text, such as a BOS token.
        Special tokens written out in ``text`` become those tokens, unless ``parse_special`` is
        False, for text that must not be able to do that.

        Raises:
            RequestError: ``text`` holds a lone surrogate, which no encoding can express.
        """
        _check_encodable(text)
        fast = self._fast if parse_special else self._literal
        ids: list[int] = fast.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def encode_batch(
        self, texts: Sequence[str], *, add_special_tokens: bool = True
    ) -> list[list[int]]:
        """``encode`` of each text, in parallel."""
        for text in texts:
            _check_encodable(text)
        batch = self._fast.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        return [encoding.ids for encoding in batch]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Text of ``ids``; ids outside the vocabulary have none."""
        pieces = [self.piece(i, skip_special_tokens=skip_special_tokens) for i in ids]
        text = b"".join(pieces).decode(errors="replace")
        return text[1:] if self.drops_leading_space and text.startswith(" ") else text

    def piece(self, token_id: int, *, skip_special_tokens: bool = True) -> bytes:
        """The bytes that a token adds to a text."""
        if not 0 <= token_id < len(self._table):
            return b""
        if skip_special_tokens and token_id in self.special_ids:
            return b""
        return self._table[token_id]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to a text; b"" for special tokens and unknown ids."""
        return self.piece(token_id)

    def token_bytes_table(self, vocab_size: int) -> list[bytes]:
        """``token_bytes`` of the ids below ``vocab_size``, the size of the model's vocabulary."""
        return [self.piece(token_id) for token_id in range(vocab_size)]

    def token_text(self, token_id: int) -> str:
        """One token alone, for display; special tokens are shown too."""
        return self.piece(token_id, skip_special_tokens=False).decode(errors="replace")

    def token_id(self, text: str) -> int | None:
        """The id of a token by its text in the vocabulary."""
        token_id: int | None = self._fast.token_to_id(text)
        return token_id

    def to_json(self) -> str:
        """The tokenizer in the format of ``tokenizer.json``."""
        text: str = self._fast.to_str()
        return text

    def apply_chat_template(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        **kwargs: Any,
    ) -> str:
        """The prompt for a conversation, to be encoded with ``add_special_tokens=False``.

        ``continue_final_message`` ends the prompt inside the last message, for the model to
        carry on; no generation prompt is added then. Other keywords go to the template.

        Raises:
            RequestError: the model has no chat template, or the template refuses the messages.
        """
        template = (tools and self._templates.get("tool_use")) or self._templates.get("default")
        if not template:
            raise RequestError(
                "the model has no chat template; send a text prompt instead",
                param="messages",
                code="no_chat_template",
            )
        if continue_final_message:
            return template.render_open(messages, tools=tools, **kwargs)
        return template.render(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, **kwargs
        )

    @cached_property
    def _literal(self) -> FastTokenizer:
        """A copy that takes the text of special tokens as ordinary text."""
        copy = FastTokenizer.from_str(self._fast.to_str())
        copy.encode_special_tokens = True
        return copy


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text holds a lone surrogate at character {error.start}", param="text"
        ) from error
