"""Admission: everything that can be refused before an engine compiles anything."""

from __future__ import annotations

from phloem.constrained import choices, ebnf, json_schema, regex, strict_json
from phloem.constrained.errors import GrammarError
from phloem.constrained.limits import DEFAULT_LIMITS, Limits
from phloem.constrained.spec import KINDS, GrammarSpec


def check(spec: GrammarSpec, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Refuse what is malformed, too large or cannot be enforced; returns warnings.

    Linear in the size of the text, and needs no vocabulary: fit for the process that takes
    requests. What only compiling can find (nothing satisfies the grammar, it is too complex) is
    left to `GrammarCompiler`.

    Raises:
        GrammarError: see there.
    """
    check_source(spec, limits)
    match spec.kind:
        case "json_schema":
            return json_schema.admit(spec.text, limits).warnings
        case "regex":
            regex.whole(regex.parse(spec.text, limits=limits))
        case "ebnf":
            ebnf.parse(spec.text, limits)
        case "choice":
            choices.parse(spec.text, limits)
    return ()


def check_source(spec: GrammarSpec, limits: Limits) -> None:
    """Refuse an unknown kind, and text that is too long or no text."""
    if spec.kind not in KINDS:
        raise GrammarError(f"kind must be one of {', '.join(KINDS)}, not {spec.kind!r}")
    if spec.options.whitespace not in ("flexible", "compact"):
        raise GrammarError(
            f"whitespace must be 'flexible' or 'compact', not {spec.options.whitespace!r}"
        )
    if len(spec.text) > limits.text_bytes or len(spec.text.encode(errors="replace")) > (
        limits.text_bytes
    ):
        raise GrammarError(
            f"the text is longer than {limits.text_bytes} bytes", code="grammar_too_complex"
        )
    strict_json.check_text(spec.text)
