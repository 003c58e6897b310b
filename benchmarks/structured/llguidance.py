"""llguidance by itself, with its default options."""

from __future__ import annotations

import json
import re
from typing import Any

import llguidance
from llguidance import LLMatcher, LLTokenizer

from structured import mask
from structured.engine import Refused, Tokens

_UNIMPLEMENTED = re.compile(r'Unimplemented keys: \["?([^"\],]+)')


def load(tokens: Tokens) -> LLGuidance:
    return LLGuidance(tokens)


class LLGuidance:
    def __init__(self, tokens: Tokens) -> None:
        self._size = tokens.size
        self._tokenizer = LLTokenizer(
            tokens.tokenizer_json, n_vocab=tokens.size, eos_token=list(tokens.eos_ids)
        )
        self.description = f"llguidance {llguidance.__version__}, white space as it comes"

    def compile(self, schema: Any) -> LLGuidanceGrammar:
        try:
            source = LLMatcher.grammar_from_json_schema(json.dumps(schema, ensure_ascii=False))
        except ValueError as error:
            raise Refused("invalid", str(error)) from error
        matcher = LLMatcher(self._tokenizer, source, log_level=0)
        if not matcher.is_error():
            matcher.deep_copy().compute_bitmask()
        if matcher.is_error():
            raise refusal(matcher.get_error())
        return LLGuidanceGrammar(matcher, self._size)


def refusal(message: str) -> Refused:
    """With the keyword, or the reason without what is particular to one schema."""
    first = message.strip().partition("\n")[0]
    named = _UNIMPLEMENTED.search(first)
    reason = re.sub(r"""["'`].*?["'`]|\d+""", "*", first)
    return Refused(named[1] if named else reason[:70], first[:300])


class LLGuidanceGrammar:
    warnings = ()

    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def walk(self) -> LLGuidanceWalk:
        return LLGuidanceWalk(self._matcher.deep_copy(), self._size)


class LLGuidanceWalk:
    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._words = mask.allocate(size)

    @property
    def accepting(self) -> bool:
        return bool(self._matcher.is_accepting())

    def fill(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._words.ctypes.data, self._words.nbytes)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error().partition("\n")[0])

    def offers(self, token: int) -> bool:
        return mask.has(self._words, token)

    def accept(self, token: int) -> bool:
        return bool(self._matcher.try_consume_tokens([token]) == 1)
