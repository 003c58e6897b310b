"""``--grammar-backend``: which engine serves a request's grammar."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest
from harness import make_core, request, run, run_alone

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.errors import ModelError
from phloem.runtime.protocol import Constraint, GenerateRequest

PATTERN = r'\{"identifier": (true|false), "number": [0-9]{1,9}\}'


def constrained() -> GenerateRequest:
    constraint = Constraint(kind="regex", text=PATTERN)
    return request([5, 6, 7], constraint=constraint, max_new_tokens=80)


@pytest.mark.parametrize("backend", ["auto", "llguidance", "fsm", "outlines"])
def test_each_backend_enforces_a_regex(tiny: LoadedModel, backend: str) -> None:
    if backend == "outlines":
        pytest.importorskip("outlines_core")
    text = run_alone(make_core(tiny, grammar_backend=backend), constrained())[0].text
    assert re.fullmatch(PATTERN, text)


def test_forced_tokens_of_an_automaton_ride_in_longer_spans(tiny: LoadedModel) -> None:
    jumping = make_core(tiny, grammar_backend="fsm")
    stepping = make_core(tiny, grammar_backend="fsm", jump_forward=False)
    jumped, stepped = run_alone(jumping, constrained()), run_alone(stepping, constrained())
    assert jumped[0].token_ids == stepped[0].token_ids
    assert jumping.stats().forced_tokens_total > 0
    assert jumping.stats().steps_total < stepping.stats().steps_total


def test_what_a_backend_does_not_serve_fails_its_request_alone(tiny: LoadedModel) -> None:
    core = make_core(tiny, grammar_backend="fsm")
    bad = request([5, 6], constraint=Constraint(kind="json_schema", text="{}"))
    found = run(core, [bad, good := constrained()])
    finish = found[bad.rid][0].finish
    assert finish is not None and finish.error is not None
    assert finish.error.status == 400
    assert "'fsm' does not serve 'json_schema'" in finish.error.message
    assert re.fullmatch(PATTERN, found[good.rid][0].text)


@pytest.mark.skipif(find_spec("outlines_core") is not None, reason="the package is here")
def test_a_backend_without_its_package_does_not_start(tiny: LoadedModel) -> None:
    with pytest.raises(ModelError, match=r"grammar_backend: .* needs the package outlines-core"):
        make_core(tiny, grammar_backend="outlines")
