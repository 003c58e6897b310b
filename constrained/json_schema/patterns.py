"""Regexes inside a schema, rewritten to the one reading that all judges share."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache

from phloem.constrained.errors import GrammarError
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.limits import Limits
from phloem.constrained.regex import charset, parse, parted, render, searched
from phloem.constrained.strict_json import pointer_to


def lay_out(schema: Schema, limits: Limits) -> bool:
    """Turn a ``pattern`` whose look-aheads are too much for one regex into several, in place.

    The others go to ``allOf``. Whether there was such a one that can be parted.
    """
    if "(?" not in schema.get("pattern", ""):
        return False
    try:
        _written(schema["pattern"], charset.COMMON, limits)
    except GrammarError as error:
        parts = _parts(schema["pattern"], limits) if error.code == "grammar_too_complex" else []
        if parts:
            others = [{"pattern": part} for part in parts[:-1]]
            schema["allOf"] = [*schema.get("allOf", ()), *others]
            schema["pattern"] = parts[-1]
        return bool(parts)
    return False


def _parts(text: str, limits: Limits) -> list[str]:
    try:
        return [render(part) for part in parted(parse(text, limits=limits))]
    except GrammarError:
        return []


def rewrite(pointer: str, schema: Schema, limits: Limits, ready: AbstractSet[str]) -> None:
    """Rewrite ``pattern`` and the keys of ``patternProperties`` in place, save what is ``ready``.

    The keys are read as ECMA-262 to the letter: a key that misses its pattern falls under
    ``additionalProperties``, so a narrower reading would let something through.
    """
    if "pattern" in schema and schema["pattern"] not in ready:
        where = pointer_to(pointer, "pattern")
        schema["pattern"] = _engine_regex(schema["pattern"], charset.COMMON, where, limits)
    if "patternProperties" in schema:
        schema["patternProperties"] = _rewrite_keys(
            pointer, schema["patternProperties"], limits, ready
        )


def check(pointer: str, schema: Schema, limits: Limits) -> None:
    """Refuse what `rewrite` would refuse."""
    if "pattern" in schema:
        _engine_regex(schema["pattern"], charset.COMMON, pointer_to(pointer, "pattern"), limits)
    where = pointer_to(pointer, "patternProperties")
    for key in schema.get("patternProperties", ()):
        _engine_regex(key, charset.ECMA, pointer_to(where, key), limits)


def _rewrite_keys(
    pointer: str, properties: Schema, limits: Limits, ready: AbstractSet[str]
) -> Schema:
    where = pointer_to(pointer, "patternProperties")
    rewritten = {
        key if key in ready else _key_regex(key, pointer_to(where, key), limits): value
        for key, value in properties.items()
    }
    if len(rewritten) < len(properties):
        raise GrammarError(
            f"two patterns at {where} mean the same",
            pointer=where,
            keyword="patternProperties",
            code="unsupported_json_schema",
        )
    return rewritten


def _key_regex(text: str, pointer: str, limits: Limits) -> str:
    return _engine_regex(text, charset.ECMA, pointer, limits)


def _engine_regex(text: str, shorthands: charset.Shorthands, pointer: str, limits: Limits) -> str:
    try:
        return _written(text, shorthands, limits)
    except GrammarError as error:
        raise GrammarError(
            f"{error.message}, in the pattern at {pointer}",
            pointer=pointer,
            keyword=pointer.split("/")[-1] if pointer.endswith("/pattern") else "patternProperties",
            code="unsupported_json_schema" if error.code == "invalid_grammar" else error.code,
        ) from None


@lru_cache(maxsize=256)
def _written(text: str, shorthands: charset.Shorthands, limits: Limits) -> str:
    return render(searched(parse(text, shorthands=shorthands, limits=limits)))
