"""lm-format-enforcer: a character-level parser beside a tree of the tokens."""

from __future__ import annotations

import logging
import re
from importlib.metadata import version
from typing import Any

from lmformatenforcer import JsonSchemaParser, TokenEnforcer, TokenEnforcerTokenizerData
from tokenizers import Tokenizer

from structured.engine import Refused, Tokens


def load(tokens: Tokens) -> LMFormatEnforcer:
    return LMFormatEnforcer(tokens)


class LMFormatEnforcer:
    def __init__(self, tokens: Tokens) -> None:
        logging.disable(logging.CRITICAL)  # it prints every mask that it cannot compute
        regular = []
        for token, data in enumerate(tokens.token_bytes):
            if data:
                regular.append((token, data.decode(errors="replace"), data.startswith(b" ")))
        self._eos = tokens.eos_ids[0]
        self._data = TokenEnforcerTokenizerData(
            regular,
            Tokenizer.from_str(tokens.tokenizer_json).decode,
            list(tokens.eos_ids),
            False,
            tokens.size,
        )
        self.description = f"lm-format-enforcer {version('lm-format-enforcer')}"

    def compile(self, schema: Any) -> LMFormatEnforcerGrammar:
        try:
            grammar = LMFormatEnforcerGrammar(self._data, schema, self._eos)
            grammar.walk().fill()
        except Exception as error:  # of no common type
            reason = re.sub(r"[\"'`({\[].*|\d+", "", str(error).strip().partition("\n")[0])
            raise Refused(reason[:70] or type(error).__name__, str(error)[:300]) from error
        return grammar


class LMFormatEnforcerGrammar:
    warnings = ()

    def __init__(self, data: TokenEnforcerTokenizerData, schema: Any, eos: int) -> None:
        self._enforcer = TokenEnforcer(data, JsonSchemaParser(schema))
        self._eos = eos

    def walk(self) -> LMFormatEnforcerWalk:
        return LMFormatEnforcerWalk(self._enforcer, self._eos)


class LMFormatEnforcerWalk:
    """A token is checked by a mask that has it: there is no other way to ask."""

    def __init__(self, enforcer: TokenEnforcer, eos: int) -> None:
        self._enforcer = enforcer
        self._eos = eos
        self._tokens: list[int] = []
        self._allowed: set[int] = set()

    @property
    def accepting(self) -> bool:
        self.fill()
        return self._eos in self._allowed

    def fill(self) -> None:
        allowed = self._enforcer.get_allowed_tokens(self._tokens)
        self._allowed = set(allowed.allowed_tokens)

    def offers(self, token: int) -> bool:
        return token in self._allowed

    def accept(self, token: int) -> bool:
        if token not in self._allowed:
            return False
        self._tokens.append(token)
        return True
