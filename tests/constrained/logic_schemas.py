"""Small schemas full of logic, and small instances, for tests of the normaliser."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, -1, 0.5, 1.5, "", "a", "b", "ab", "abc"])
NAMES = st.sampled_from(["a", "b", "c"])
INSTANCES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
_BOUND = st.sampled_from([0, 1, 2, 0.5])
_COUNT = st.integers(0, 2)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
    "enum": st.lists(SCALARS, min_size=1, max_size=3),
    "const": INSTANCES,
    "minimum": _BOUND,
    "exclusiveMinimum": _BOUND,
    "maximum": _BOUND,
    "exclusiveMaximum": _BOUND,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": st.sampled_from(["^a", "b$", "^[ab]{2}$", "[^a]"]),
    "required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
    "minItems": _COUNT,
    "maxItems": _COUNT,
}


def plain(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of at most three keywords without logic; ``inner`` are those inside."""
    structures = {
        "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=2),
        "additionalProperties": inner | st.just(False),
        "items": inner | st.just(False),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
    }
    pairs = [st.tuples(st.just(key), value) for key, value in (_LEAVES | structures).items()]
    return st.lists(st.one_of(pairs), max_size=3).map(dict)


def with_logic(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Plain schemas with one keyword of logic over ``inner``."""
    some = st.lists(inner, min_size=1, max_size=3)
    names = st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), min_size=1, max_size=2)
    logic: list[st.SearchStrategy[dict[str, Any]]] = [
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"allOf": some}),
        st.fixed_dictionaries({"dependentRequired": names}),
        st.fixed_dictionaries({"dependentSchemas": st.dictionaries(NAMES, inner, max_size=2)}),
        st.just({"$ref": "#/$defs/x"}),
    ]
    return st.builds(lambda a, b: {**a, **b}, plain(inner), st.one_of(logic))


PLAIN = plain(st.booleans() | plain(st.booleans()))
LOGIC = with_logic(st.booleans() | PLAIN | with_logic(PLAIN))
