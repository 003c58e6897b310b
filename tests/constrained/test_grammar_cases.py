"""Inputs on which other engines fail, with the right answer."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench
from grammar_samples import ANNOTATED, CASES, spec_of

from phloem.constrained import GrammarError


@pytest.mark.skipif(not CASES, reason="the shared cases are not here")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_verdict(bench: Bench, case: dict[str, Any]) -> None:
    try:
        grammar = bench.compiler.compile(spec_of(case))
    except GrammarError as error:
        assert case["expect"] != "ok"
        assert error.message
        return
    assert case["expect"] != "error"
    assert [text for text in case["accept"] if not bench.accepts(grammar, text)] == []
    passed = [text for text in case["reject"] if bench.accepts(grammar, text)]
    assert passed == [] or (case["id"] in ANNOTATED and grammar.warnings)
