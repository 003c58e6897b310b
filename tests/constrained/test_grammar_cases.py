"""Inputs on which other engines fail, with the right answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from constrained_tools import SHARED, Bench

from phloem.constrained import GrammarError, GrammarSpec

FILE = SHARED / "cases" / "structured.json"

REFUSED = {
    "patternProperties_conjunction": "patternProperties",
    "patternProperties_propertyNames": "propertyNames",
}
"""Valid schemas that are not enforced yet: refused with the keyword that is in the way."""

ANNOTATED = {"format_unknown"}
"""Where a format is an annotation by our choice, so what it would reject may pass, with a word."""

CASES = json.loads(FILE.read_text()) if FILE.exists() else []


def spec_of(case: dict[str, Any]) -> GrammarSpec:
    source = case["schema_or_regex"]
    if source == "__DEEP__":
        return GrammarSpec("json_schema", '{"type":"array","items":' * 2_000 + "{}" + "}" * 2_000)
    is_json = case["kind"] in ("json_schema", "choice")
    return GrammarSpec(case["kind"], json.dumps(source) if is_json else source)


@pytest.mark.skipif(not CASES, reason="the shared cases are not here")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_verdict(bench: Bench, case: dict[str, Any]) -> None:
    try:
        grammar = bench.compiler.compile(spec_of(case))
    except GrammarError as error:
        assert case["expect"] != "ok" or REFUSED[case["id"]] == error.keyword
        assert error.message
        return
    assert case["expect"] != "error" and case["id"] not in REFUSED
    assert [text for text in case["accept"] if not bench.accepts(grammar, text)] == []
    passed = [text for text in case["reject"] if bench.accepts(grammar, text)]
    assert passed == [] or (case["id"] in ANNOTATED and grammar.warnings)
