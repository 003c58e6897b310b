"""XGrammar, with objects as open as the standard has them: ``strict_mode`` closes them."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

import xgrammar

from structured import mask
from structured.engine import Refused, Tokens


def load(tokens: Tokens) -> XGrammar:
    return XGrammar(tokens)


class XGrammar:
    def __init__(self, tokens: Tokens) -> None:
        info = xgrammar.TokenizerInfo(
            list(tokens.token_bytes), stop_token_ids=list(tokens.eos_ids), vocab_size=tokens.size
        )
        self._size = tokens.size
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.description = f"xgrammar {version('xgrammar')}, strict_mode off"

    def compile(self, schema: Any) -> XGrammarGrammar:
        try:
            text = json.dumps(schema, ensure_ascii=False)
            compiled = self._compiler.compile_json_schema(text, strict_mode=False)
            grammar = XGrammarGrammar(compiled, self._size)
            grammar.walk().fill()
        except Exception as error:  # of no common type
            reason = re.sub(r"^.*?: |[\"'`{].*|\d+", "", str(error).strip().partition("\n")[0])
            raise Refused(reason[:70] or type(error).__name__, str(error)[:300]) from error
        return grammar


class XGrammarGrammar:
    warnings = ()

    def __init__(self, compiled: Any, size: int) -> None:
        self._compiled = compiled
        self._size = size

    def walk(self) -> XGrammarWalk:
        return XGrammarWalk(xgrammar.GrammarMatcher(self._compiled), self._size)


class XGrammarWalk:
    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher = matcher
        self._words = mask.allocate(size)
        self._row = self._words.view("int32")[None]

    @property
    def accepting(self) -> bool:
        return bool(self._matcher.is_completed())

    def fill(self) -> None:
        if not self._matcher.fill_next_token_bitmask(self._row):
            self._row.fill(-1)  # that is its way to say that all are allowed

    def offers(self, token: int) -> bool:
        return mask.has(self._words, token)

    def accept(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))
