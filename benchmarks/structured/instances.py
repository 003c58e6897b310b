"""Instances of schemas: ``python -m structured.instances COUNT``, a JSON line per schema.

Valid ones are hypothesis-jsonschema's, invalid ones are valid ones with a change; the jsonschema
library judges both.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import validator_for

from structured.order import ordered

_TRIES = 12
"""Changes tried for each invalid instance that is wanted."""
_LONGEST = 4_000
"""Characters of an instance."""
Judge = Callable[[Any], bool]


def main() -> None:
    warnings.simplefilter("ignore")
    count = int(sys.argv[1])
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(instances(json.loads(line), count)), flush=True)


def instances(schema: Any, count: int) -> dict[str, list[Any]]:
    """At most ``count`` valid and as many invalid ones, all different."""
    is_valid, random_ = judge(schema), random.Random(0)
    found = distinct(ordered(value, schema) for value in examples(schema, 4 * count))
    valid = [value for value in found if is_valid(value)][:count]
    changed = distinct(
        change(value, random_) for value in valid for _ in range(_TRIES * count // len(valid) + 1)
    )
    return {"valid": valid, "invalid": [v for v in changed if not is_valid(v)][:count]}


def judge(schema: Any) -> Judge:
    kind = validator_for(schema, default=Draft202012Validator)
    validator = kind(schema, format_checker=FormatChecker())
    return lambda value: bool(validator.is_valid(value))


def examples(schema: Any, count: int) -> list[Any]:
    found: list[Any] = []

    @seed(0)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(from_schema(copy.deepcopy(schema)))  # it may change what it is given
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return found


def distinct(values: Iterator[Any]) -> list[Any]:
    """Those of a moderate length that JSON can say, each once, the long ones last."""
    texts = {}
    for value in values:
        try:
            texts[json.dumps(value, allow_nan=False)] = None
        except ValueError:
            continue
    fit = [text for text in texts if len(text) < _LONGEST and text.isprintable()]
    return [json.loads(text) for text in fit]


def change(value: Any, random_: random.Random) -> Any:
    """A copy of ``value`` that differs in one random place."""
    holder = [copy.deepcopy(value)]
    container, key = random_.choice(list(places(holder)))
    if isinstance(container, dict) and random_.random() < 0.3:
        del container[key]
    else:
        container[key] = replaced(container[key], random_)
    return holder[0] if holder else None


def places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Where values are: containers with an index or key, the outermost first."""
    keys = range(len(container)) if isinstance(container, list) else list(container)
    for key in keys:
        yield container, key
        if isinstance(container[key], dict | list):
            yield from places(container[key])


def replaced(value: Any, random_: random.Random) -> Any:
    """Another value, often one that is near."""
    others: list[Any] = [None, True, "x", -1, 0.5, [], {}, {"x": 1}, [value], [value, value]]
    match value:
        case bool() | None:
            pass
        case int() | float():
            others += [value + 1, -value - 1, value + 0.25, value * 1000 + 1000, str(value)] * 2
        case str():
            others += [value + "!", value[1:], value.upper(), value * 40 + "?", ""] * 2
        case list():
            others += [value + value, value[1:], [*value, None], value[::-1]] * 3
        case dict():
            others += [{**value, "extra": 1}, {**value, "": None}] * 5
    return random_.choice(others)


if __name__ == "__main__":
    main()
