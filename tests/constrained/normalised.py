"""How tests of the normaliser compare a compiled schema with the judge."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import permutations, product
from typing import Any

from constrained_tools import Bench, violations
from hypothesis import strategies as st

from phloem.constrained import GrammarError

SCALARS = st.sampled_from([None, True, 0, 1, 2, 5, "", "a", "xy"])
SIMPLE = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "string"},
        {"const": 1},
        {"enum": [1, "a", None]},
        {"minimum": 2},
        {"maxLength": 1},
        {"type": ["null", "boolean"]},
        True,
        False,
    ]
)
NAMES = ("a", "b", "ab", "x-1", "x-ab", "zz")


def objects(values: st.SearchStrategy[Any] = SCALARS) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of `NAMES`."""
    return st.dictionaries(st.sampled_from(NAMES), values, max_size=4)


def properties(schemas: st.SearchStrategy[Any] = SIMPLE) -> st.SearchStrategy[dict[str, Any]]:
    """What ``properties`` may be."""
    return objects(schemas)


def compiles(bench: Bench, schema: Any, *refusals: str) -> bool:
    """Whether ``schema`` compiles; if not, nothing satisfies it, or it is one of ``refusals``."""
    try:
        bench.schema(schema)
    except GrammarError as error:
        assert error.code in ("invalid_grammar", *refusals), (schema, error)
        return False
    return True


def check(bench: Bench, schema: Any, instances: Iterable[Any]) -> None:
    """Each instance is accepted, in some order of its keys, if and only if it is valid.

    If the grammar warns that some valid ones are not generated, these may be left out.
    """
    grammar = bench.schema(schema)
    narrow = any("not generated" in warning for warning in grammar.warnings)
    for instance in instances:
        texts = [json.dumps(one, ensure_ascii=False) for one in orders(instance)]
        valid = violations(schema, texts[0]) == []
        accepted = any(bench.accepts(grammar, text) for text in texts)
        assert accepted == valid or (narrow and valid), (schema, texts[0], valid)


def orders(instance: Any) -> Iterator[Any]:
    """``instance`` with the keys of its objects in every order: a schema sets one."""
    if isinstance(instance, dict):
        for names in permutations(instance):
            for values in product(*(list(orders(instance[name])) for name in names)):
                yield dict(zip(names, values, strict=True))
    elif isinstance(instance, list):
        yield from map(list, product(*(list(orders(item)) for item in instance)))
    else:
        yield instance


def walk(bench: Bench, schema: Any, seed: int) -> None:
    """Random walks under the masks end in valid documents."""
    grammar, rng = bench.schema(schema), random.Random(seed)
    for steps in (2, 6, 12, 20):
        text = bench.walk(grammar, rng, steps)
        assert text is None or violations(schema, text) == [], (schema, text)
