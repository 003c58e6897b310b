"""Hostile grammars end in an answer: within a bound of processor time and memory, and no crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_grammars import HOSTILE

HERE = Path(__file__).parent

VERDICTS = {
    "deep schema": "grammar_too_complex",
    "deep text": "grammar_too_complex",
    "open strings": "grammar_too_complex",
    "doubling allOf": "ok",
    "product of allOf": "grammar_too_complex",
    "longer string": "unsupported_json_schema",
    "int64 constant": "unsupported_json_schema",
    "int64 bound": "unsupported_json_schema",
    "prime divisor": "grammar_too_complex",
    "coprime divisors": "grammar_too_complex",
    "fine divisor": "grammar_too_complex",
    "met patterns": "grammar_too_complex",
    "deep regex": "grammar_too_complex",
    "vast count": "grammar_too_complex",
    "doubling rules": "grammar_too_complex",
    "one key twice": "invalid_grammar",
    "long integer": "invalid_grammar",
    "too long": "grammar_too_complex",
    "chain of refs": "ok",
    "chain of properties": "ok",
    "chain of allOf": "ok",
    "chain of rules": "ok",
    "chain of open rules": "ok",
}
"""Those whose verdict is settled; of the others it is enough that there is one."""


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(HERE / "hostile_grammars.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "RUST_BACKTRACE": "0"},
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"it ended after {lines[-1:]}: {done.stderr[-2_000:]}"
    return dict(lines)


def test_every_grammar_gets_a_verdict(verdicts: dict[str, str]) -> None:
    assert verdicts.keys() == HOSTILE.keys()


@pytest.mark.parametrize("name", VERDICTS)
def test_settled_verdicts(verdicts: dict[str, str], name: str) -> None:
    assert verdicts[name] == VERDICTS[name]
