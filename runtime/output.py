"""A sequence's text: decoded as tokens come, cut where a stop string or regex matches."""

from __future__ import annotations

from phloem.runtime.protocol import SamplingParams
from phloem.runtime.text.detokenizer import Detokenizer
from phloem.runtime.text.stop import StopMatcher
from phloem.runtime.text.tokenizer import Tokenizer


class OutputText:
    """Turns token ids into released text; never releases part of a character or of a stop."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams) -> None:
        self._detokenizer = Detokenizer(tokenizer, params.skip_special_tokens)
        self._stops = (
            StopMatcher(params.stop, params.stop_regex, keep_match=params.no_stop_trim)
            if params.stop or params.stop_regex
            else None
        )

    def push(self, token_id: int, *, may_stop: bool = True) -> tuple[str, str | None]:
        """Text that the token releases, and what stop it completes; ``may_stop`` False ignores stops."""
        text = self._detokenizer.push((token_id,))
        if self._stops is None or not may_stop:
            return text, None
        result = self._stops.push(text)
        return result.text, result.matched

    def finish(self) -> str:
        """Text still held back, at the end of a sequence that no stop ended."""
        tail = self._detokenizer.finish()
        if self._stops is None:
            return tail
        return self._stops.push(tail).text + self._stops.flush()
