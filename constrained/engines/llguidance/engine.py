"""Compiling with llguidance."""

from __future__ import annotations

from functools import partial

from llguidance import LLMatcher, LLParserLimits

from phloem.constrained import json_schema
from phloem.constrained.engines.llguidance import deep_stack
from phloem.constrained.engines.llguidance.source import json_source, text_source
from phloem.constrained.engines.llguidance.state import LLGuidanceState, Template, first_line
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.errors import GrammarError
from phloem.constrained.guards.state import GuardedState
from phloem.constrained.guards.token_classes import TokenClasses
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import Compiled, State

_COMPLEXITY = ("fuel", "too large", "too big", "too complex", "limit", "exceeded")


class LLGuidanceEngine:
    """Lazy regex derivatives under an Earley parser: compiles in a millisecond, bounded by fuel."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self._tokenizer = tokenizer
        self._limits = limits
        self._classes = TokenClasses(tokenizer.vocabulary)

    def compile(self, spec: GrammarSpec) -> Compiled:
        """See `Engine`."""
        if spec.kind in ("regex", "ebnf"):
            return self._compile(text_source(spec, self._limits), None)
        text = spec.text if spec.kind == "json_schema" else '{"type":"object"}'
        admitted = json_schema.admit(text, self._limits)
        return self._compile(json_source(admitted, spec.options), admitted)

    def _compile(self, source: str, admitted: json_schema.Admitted | None) -> Compiled:
        build = partial(
            LLMatcher,
            self._tokenizer.native,
            source,
            log_level=0,
            limits=LLParserLimits(verbose_errors=False),
        )
        template = Template(partial(deep_stack.call, build, deep_stack.for_text(len(source))))
        if template.error:
            raise _as_grammar_error(template.error, admitted)
        start: State = LLGuidanceState.at_start(template)
        if admitted is not None and admitted.distinct is not None:
            self._classes.prepare()
            index = self._tokenizer.index
            start = GuardedState(start, admitted.distinct, self._classes, index)
        return Compiled(
            start,
            _estimated_bytes(source),
            admitted.warnings if admitted else (),
        )


def _estimated_bytes(source: str) -> int:
    """Resident growth measured over objects, enums and formats: about 36 bytes a character."""
    return 64 * 1024 + 40 * len(source)


def _plain(message: str) -> str:
    """In words that do not name options of the engine."""
    if message.startswith("oneOf constraints"):
        return (
            "the branches of 'oneOf' cannot be shown to exclude each other: use 'anyOf', or give "
            "each branch a required property with a 'const' of its own"
        )
    return message


def _as_grammar_error(error: str, admitted: json_schema.Admitted | None) -> GrammarError:
    message = _plain(first_line(error))
    if any(word in message for word in _COMPLEXITY):
        return GrammarError(message, code="grammar_too_complex")
    if admitted is None or message.startswith("Unsatisfiable"):
        return GrammarError(message)
    pointer, keyword = json_schema.locate(admitted.schema, message)
    return GrammarError(message, pointer=pointer, keyword=keyword, code="unsupported_json_schema")
