"""The parts of ``benchmarks/constrained.py``."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constrained_tools import Bench
from structured.cases import find
from structured.durations import Durations
from structured.engine import Tokens
from structured.examination import Outcome, examine
from structured.order import ordered
from structured.phloem import Phloem
from structured.process import Process
from structured.report import markdown
from structured.tally import Tally
from structured.worker import encoder

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def tokens(bench: Bench) -> Tokens:
    known = bench.vocabulary
    return Tokens(known.token_bytes, known.eos_ids, known.special_ids, known.tokenizer_json)


def test_durations_are_merged_and_summed_up() -> None:
    random_ = random.Random(0)
    seconds = [random_.lognormvariate(-10, 2) for _ in range(5_000)]
    halves = [Durations(), Durations()]
    halves[0].add(seconds[::2])
    halves[1].add(seconds[1::2])
    halves[0].merge(Durations.read(json.loads(json.dumps(halves[1].plain()))))
    whole = halves[0]
    assert whole.count == 5_000 and whole.longest == max(seconds)
    assert whole.mean == pytest.approx(sum(seconds) / 5_000)
    for percent in (1, 50, 99, 99.9):
        exact = float(np.percentile(seconds, percent, method="inverted_cdf"))
        assert whole.percentile(percent) == pytest.approx(exact, rel=0.015)
    assert np.isnan(Durations().percentile(50)) and np.isnan(Durations().mean)


def test_cases_are_found_and_spread_evenly(tmp_path: Path) -> None:
    lines = [json.dumps({"name": f"é{number}"}, ensure_ascii=False) for number in range(10)]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.jsonl").write_text("\n".join(lines) + "\n\n")
    (tmp_path / "two.jsonl").write_text(lines[0])
    spread = [json.loads(case.text())["name"] for case in find(tmp_path, 3)]
    assert spread == ["é0", "é3", "é6", "é0"]
    assert len(list(find(tmp_path))) == 11


CASES: list[tuple[Any, list[Any], list[Any], dict[str, Any]]] = [
    (PERSON, [{"name": "a"}], [{"age": 1}, {"name": 1}], {"right": True}),
    ({"type": "array"}, [[]], [[], {}], {"passed": [0]}),
    ({"type": "array"}, [[], {}], [], {"rejected": [1]}),
    ({"type": "str"}, [], [], {"verdict": "refused", "keyword": "type"}),
    ({"type": "string"}, ["\ud800"], ["\ud800"], {"instances": 0, "right": True}),
]


@pytest.mark.parametrize(("schema", "valid", "invalid", "expected"), CASES)
def test_a_schema_is_examined(
    tokens: Tokens, schema: Any, valid: list[Any], invalid: list[Any], expected: dict[str, Any]
) -> None:
    case = {"name": "it", "schema": schema, "valid": valid, "invalid": invalid}
    outcome = examine(Phloem(tokens), encoder(tokens), case)
    assert {key: getattr(outcome, key) for key in expected} == expected
    assert Outcome.read(json.loads(json.dumps(outcome.plain()))) == outcome
    tally = Tally("an engine")
    tally.add("file", outcome)
    assert "an engine" in markdown({"phloem": tally})


def test_keys_are_ordered_as_the_schema_has_them() -> None:
    schema = {
        "$defs": {"pair": {"properties": {"b": {}, "a": {}}}},
        "allOf": [{"properties": {"z": {"items": {"$ref": "#/$defs/pair"}}}}],
        "properties": {"m": {}, "a": {"additionalProperties": {"$ref": "#/$defs/pair"}}},
        "required": ["r"],
    }
    value = {"x": 1, "r": 1, "a": {"k": {"a": 1, "b": 2}}, "z": [{"a": 1, "b": 2}], "m": 1}
    assert json.dumps(ordered(value, schema)) == (
        '{"m": 1, "a": {"k": {"b": 2, "a": 1}}, "z": [{"b": 2, "a": 1}], "r": 1, "x": 1}'
    )


ANSWERS = """
import sys, time
print("{}", flush=True)
for line in sys.stdin:
    if line == "die\\n":
        sys.exit("last words")
    while line == "hang\\n":
        time.sleep(1)
    print(line, end="", flush=True)
"""


def test_a_process_that_hangs_or_dies_is_replaced() -> None:
    process = Process([sys.executable, "-c", ANSWERS], seconds=0.2)
    started = time.monotonic()
    assert process.ask(b"1") == 1
    with pytest.raises(EOFError, match="last words"):
        process.ask(b"die")
    with pytest.raises(TimeoutError):
        process.ask(b"hang")
    assert process.ask(b"2") == 2
    process.stop()
    assert time.monotonic() - started < 10
