"""Specs in the notation that llguidance compiles."""

from __future__ import annotations

from typing import Any

from llguidance import LLMatcher

from phloem.constrained import ebnf, json_schema, regex, strict_json
from phloem.constrained.limits import Limits
from phloem.constrained.spec import GrammarOptions, GrammarSpec

_FLEXIBLE = r"[\x20\x0A\x0D\x09]{1,40}"
_ESCAPES = 'nrbtf\\"'


def json_source(admitted: json_schema.Admitted, options: GrammarOptions) -> str:
    """The grammar for an admitted schema."""
    flexible = options.whitespace == "flexible"
    settings: dict[str, Any] = {
        "whitespace_flexible": flexible,
        "whitespace_pattern": _FLEXIBLE if flexible else None,
        "json_allowed_escapes": _ESCAPES + ("u" if admitted.unicode_escapes else ""),
        "json_allow_general_unicode_escapes": admitted.unicode_escapes,
        "coerce_one_of": False,
        "lenient": False,
    }
    return str(
        LLMatcher.grammar_from_json_schema(strict_json.dumps(admitted.schema), overrides=settings)
    )


def text_source(spec: GrammarSpec, limits: Limits) -> str:
    """The grammar for a ``regex`` or an ``ebnf``."""
    if spec.kind == "regex":
        tree = regex.whole(regex.parse(spec.text, limits=limits))
        return str(LLMatcher.grammar_from_regex(regex.render(tree)))
    return str(LLMatcher.grammar_from_lark(ebnf.to_lark(ebnf.parse(spec.text, limits))))
