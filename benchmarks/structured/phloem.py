"""Phloem: its normaliser and whichever engine serves schemas."""

from __future__ import annotations

import json
from typing import Any

import llguidance

from phloem import constrained
from structured import mask
from structured.engine import Refused, Tokens


def load(tokens: Tokens) -> Phloem:
    return Phloem(tokens)


class Phloem:
    """Compiles as a server does, without its cache."""

    def __init__(self, tokens: Tokens) -> None:
        vocabulary = constrained.Vocabulary(
            tokens.token_bytes, tokens.eos_ids, tokens.special_ids, tokens.tokenizer_json
        )
        self._compiler = constrained.GrammarCompiler(vocabulary, cache_entries=1, failure_ttl_s=0)
        self._compiler.compile(constrained.GrammarSpec("json_object"))  # builds the tokenizer
        self.description = f"phloem on llguidance {llguidance.__version__}"

    def compile(self, schema: Any) -> PhloemGrammar:
        try:
            text = json.dumps(schema, ensure_ascii=False)
            grammar = self._compiler.compile(constrained.GrammarSpec("json_schema", text))
        except constrained.GrammarError as error:
            raise Refused(error.keyword or error.code, error.message) from error
        return PhloemGrammar(grammar)


class PhloemGrammar:
    def __init__(self, grammar: constrained.Grammar) -> None:
        self._grammar = grammar
        self.warnings = grammar.warnings

    def walk(self) -> PhloemWalk:
        return PhloemWalk(self._grammar)


class PhloemWalk:
    def __init__(self, grammar: constrained.Grammar) -> None:
        self._matcher = grammar.matcher()
        self._row = constrained.allocate(1, grammar.vocabulary.size)[0]
        self._words = self._row.view("uint32")

    @property
    def accepting(self) -> bool:
        return self._matcher.accepting

    def fill(self) -> None:
        self._matcher.fill(self._row)

    def offers(self, token: int) -> bool:
        return mask.has(self._words, token)

    def accept(self, token: int) -> bool:
        return self._matcher.accept_many((token,)) == 1
