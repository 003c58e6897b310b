"""The JSON-Schema-Test-Suite: nothing invalid passes, and coverage does not shrink."""

from __future__ import annotations

import json
from typing import Any

import pytest
from constrained_tools import SHARED, Bench, schema_spec

from phloem.constrained import GrammarError

FOLDER = SHARED / "data" / "jsts"
DRAFTS = {
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", 360),
    "draft7": ("http://json-schema.org/draft-07/schema#", 252),
}
"""Draft -> (its id, groups fully right at the last count)."""


def spellings(value: Any) -> list[str]:
    return [
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        json.dumps(value, ensure_ascii=False, indent=2),
    ]


def is_annotation(group: dict[str, Any], warnings: tuple[str, ...]) -> bool:
    """Whether the group tests what the standard lets us take as an annotation."""
    return "optional/content" in group["name"] or any("is not enforced" in w for w in warnings)


@pytest.mark.skipif(not FOLDER.exists(), reason="the shared test suite is not here")
@pytest.mark.parametrize("draft", DRAFTS)
def test_draft(bench: Bench, draft: str) -> None:
    dialect, least_right = DRAFTS[draft]
    right, unsound = 0, []
    for line in (FOLDER / f"{draft}.jsonl").read_text().rstrip("\n").split("\n"):
        group = json.loads(line)
        schema = group["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": dialect, **schema}
        try:
            grammar = bench.compiler.compile(schema_spec(schema))
        except GrammarError:
            continue
        invalid = [text for value in group["invalid"] for text in spellings(value)]
        valid = [text for value in group["valid"] for text in spellings(value)]
        passed = [text for text in invalid if bench.accepts(grammar, text)]
        if passed and not is_annotation(group, grammar.warnings):
            unsound.append((group["name"], passed[0]))
        right += not passed and all(bench.accepts(grammar, text) for text in valid)
    assert unsound == []
    assert right >= least_right
