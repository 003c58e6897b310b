"""The text of a ``choice``: a JSON array of strings, each one possible output."""

from __future__ import annotations

from phloem.constrained import strict_json
from phloem.constrained.errors import GrammarError
from phloem.constrained.limits import DEFAULT_LIMITS, Limits


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """The distinct choices in their order; the empty string may be one.

    Raises:
        GrammarError: ``text`` is no array of strings, is empty or has too many.
    """
    choices = strict_json.loads(text, depth=limits.depth)
    if not isinstance(choices, list) or not choices:
        raise GrammarError("choice: the text must be a non-empty JSON array of strings")
    if len(choices) > limits.choices:
        raise GrammarError(
            f"choice: {len(choices)} choices, more than {limits.choices}",
            code="grammar_too_complex",
        )
    for index, choice in enumerate(choices):
        if not isinstance(choice, str):
            raise GrammarError(f"choice: item {index} is not a string", pointer=f"#/{index}")
    return tuple(dict.fromkeys(choices))
