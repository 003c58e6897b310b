"""Text from tokens as they come."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from phloem.runtime.text.tokenizer import Tokenizer

_utf8_decoder = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """Releases text as soon as its characters are complete.

    However the tokens are cut into pushes, the released texts joined with ``finish`` are
    ``tokenizer.decode`` of them all. At most three bytes, the start of a character, are held
    back, so the cost of a push does not depend on what came before.

    ``continues``: the tokens follow a prompt. Vocabularies that put a space before a text drop
    it when decoding; in the middle of a text that space is real.
    """

    def __init__(
        self, tokenizer: Tokenizer, skip_special_tokens: bool = True, *, continues: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._utf8 = _utf8_decoder(errors="replace")
        self._drop_space = tokenizer.drops_leading_space and not continues

    def push(self, token_ids: Iterable[int]) -> str:
        """The text that ``token_ids`` complete."""
        pieces = [self._tokenizer.piece(i, skip_special_tokens=self._skip) for i in token_ids]
        return self._opened(self._utf8.decode(b"".join(pieces)))

    def finish(self) -> str:
        """U+FFFD for a character that was never completed, else nothing."""
        return self._opened(self._utf8.decode(b"", final=True))

    def _opened(self, text: str) -> str:
        """``text`` without the leading space, if it is the first."""
        if not self._drop_space or not text:
            return text
        self._drop_space = False
        return text.removeprefix(" ")
