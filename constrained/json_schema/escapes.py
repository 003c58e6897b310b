"""Which spellings of a string are safe.

The engine tells additional keys from named ones by their spelling. With ``\\uXXXX`` for any
character, ``"\\u0061"`` passes for an additional key although it is ``"a"``, whose schema it then
escapes. So such escapes are allowed only where no schema names keys and leaves others open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.positions import Position
from phloem.constrained.strict_json import pointer_to, strings

_NEEDS_ESCAPE = re.compile(r"[\x00-\x07\x0b\x0e-\x1f\x7f]")
"""Characters that only ``\\uXXXX`` can spell, as the engine writes them."""


def allow_unicode(positions: Sequence[Position]) -> bool:
    """Whether ``\\uXXXX`` may be used.

    Raises:
        GrammarError: it may not, but a constant cannot be written without.
    """
    if not any(_names_some_keys(position.schema) for position in positions):
        return True
    for position in positions:
        for keyword in position.schema.keys() & {"enum", "const"}:
            if any(map(_NEEDS_ESCAPE.search, strings(position.schema[keyword]))):
                raise GrammarError(
                    f"{keyword!r} at {position.pointer} holds a control character, which this "
                    "schema cannot allow: it names some keys of an object and leaves others open",
                    pointer=pointer_to(position.pointer, keyword),
                    keyword=keyword,
                    code="unsupported_json_schema",
                )
    return False


def has_free_keys(schema: Schema) -> bool:
    """Whether an object may have keys that ``schema`` does not name."""
    return schema.get("additionalProperties") is not False or bool(schema.get("patternProperties"))


def _names_some_keys(schema: Schema) -> bool:
    named = ("properties", "required", "patternProperties")
    return has_free_keys(schema) and any(schema.get(keyword) for keyword in named)
