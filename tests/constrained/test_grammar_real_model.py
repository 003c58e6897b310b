"""The same promises on the default model's tokenizer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from constrained_tools import Bench, violations
from grammar_samples import ANNOTATED, CASES, SCHEMAS, spec_of

from phloem.constrained import GrammarCompiler, GrammarError, GrammarSpec, Vocabulary

pytestmark = pytest.mark.slow

PADDING = 100


@pytest.fixture(scope="module")
def real(default_model: Path) -> Iterator[Bench]:
    """The tokenizer as the engine hands it over, for a model wider than it, with two EOS."""
    from phloem.runtime.store import resolve
    from phloem.runtime.text import load_tokenizer

    tokenizer = load_tokenizer(resolve(str(default_model)))
    width = tokenizer.vocab_size + PADDING
    vocabulary = Vocabulary(
        token_bytes=tokenizer.token_bytes_table(width),
        eos_ids=(*tokenizer.eos_token_ids, 0),
        special_ids=frozenset(tokenizer.special_ids),
        tokenizer_json=tokenizer.to_json(),
    )
    compiler = GrammarCompiler(vocabulary)
    yield Bench(compiler, vocabulary)
    compiler.close()


@pytest.mark.filterwarnings("ignore:Possible set intersection:FutureWarning")
@pytest.mark.parametrize("name", SCHEMAS)
def test_walks_satisfy_the_schema(real: Bench, name: str) -> None:
    grammar = real.schema(SCHEMAS[name])
    rng = random.Random(name)
    texts = [real.walk(grammar, rng, steps) for steps in (2, 8, 25) for _ in range(8)]
    finished = [text for text in texts if text is not None]
    assert finished
    for text in finished:
        assert violations(SCHEMAS[name], text) == [], text


@pytest.mark.skipif(not CASES, reason="the shared cases are not here")
def test_the_shared_cases(real: Bench) -> None:
    for case in CASES:
        try:
            grammar = real.compiler.compile(spec_of(case))
        except GrammarError:
            continue
        assert all(real.accepts(grammar, text) for text in case["accept"]), case["id"]
        passed = any(real.accepts(grammar, text) for text in case["reject"])
        assert not passed or case["id"] in ANNOTATED, case["id"]


def test_forced_runs_are_the_tokenizers_own(real: Bench) -> None:
    """Over documents of random walks, each forced run is how the whole document is cut."""
    schema = {
        "type": "object",
        "properties": {
            "orderId": {"type": "integer"},
            "description": {"enum": ["hello world", "hello there", "日本語", None]},
            "kind": {"const": "a somewhat longer constant"},
        },
        "required": ["orderId", "description", "kind"],
        "additionalProperties": False,
    }
    grammar, rng, runs = real.schema(schema, whitespace="compact"), random.Random(0), 0
    for _ in range(40):
        text = real.walk(grammar, rng, 30)
        assert text is not None
        tokens, matcher, written = real.encode(text), grammar.matcher(), 0
        while written < len(tokens):
            forced = matcher.forced_tokens(64)
            assert forced == tokens[written : written + len(forced)]
            step = max(1, len(forced))
            assert matcher.accept_many(tokens[written : written + step]) == step
            written += step
            runs += len(forced) > 1
    assert runs > 80


def test_padding_and_control_tokens_are_never_allowed(real: Bench) -> None:
    for spec in (GrammarSpec("json_object"), GrammarSpec("regex", "(?s).*")):
        matcher = real.compiler.compile(spec).matcher()
        assert set(real.allowed(matcher)) <= real.vocabulary.text_ids
        assert max(real.vocabulary.text_ids) < real.vocabulary.size - PADDING
