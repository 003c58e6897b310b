"""A sequence's text: decoded as tokens come, cut where a stop string or regex matches."""

from __future__ import annotations

from phloem.runtime.protocol import SamplingParams
from phloem.runtime.text import Detokenizer, StopMatcher, StopResult, Tokenizer


class OutputText:
    """Turns token ids into released text; never releases part of a character or of a stop."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams) -> None:
        self._detokenizer = Detokenizer(tokenizer, params.skip_special_tokens, continues=True)
        self._stops = StopMatcher(params.stop, params.stop_regex, trim=not params.no_stop_trim)

    def push(self, token_id: int, *, may_stop: bool = True) -> StopResult:
        """What the token releases, and the stop that it completes; may raise RequestError.

        With ``may_stop`` False, stops are not looked for.
        """
        text = self._detokenizer.push((token_id,))
        return self._stops.push(text) if may_stop else StopResult(text)

    def finish(self) -> str:
        """Text still held back, at the end of a sequence that no stop ended."""
        return self._stops.push(self._detokenizer.finish()).text + self._stops.flush()
