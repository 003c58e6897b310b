"""Greedy output is the same however it is computed. The greatest property of all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import pytest
from harness import Arithmetic, drain, gather, make_core, request, run
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.completion import Completion
from phloem.runtime.config import Eviction, Policy
from phloem.runtime.protocol import Constraint, GenerateRequest

CONSTRAINTS = (
    None,
    None,
    Constraint(kind="regex", text=r"(alpha|alphabet|beta) [0-9]{2,4}"),
    Constraint(kind="choice", text=json.dumps(["yes", "yesterday", "no"])),
    Constraint(
        kind="json_schema",
        text=json.dumps(
            {
                "type": "object",
                "properties": {"identifier": {"type": "integer"}, "flag": {"type": "boolean"}},
                "required": ["identifier", "flag"],
                "additionalProperties": False,
            }
        ),
    ),
)
STEMS = ([5] * 40, list(range(20, 90)), list(range(20, 60)) + [7] * 9, [11, 12, 13])


@dataclass(frozen=True)
class Prompt:
    """A prompt that shares its head with others, and what to do with it."""

    stem: int
    cut: int
    tail: tuple[int, ...]
    count: int
    constraint: int
    new_tokens: int
    pin_ttl: float = 0.0
    calls_left: int | None = None

    def request(self) -> GenerateRequest:
        ids = STEMS[self.stem][: self.cut] + list(self.tail)
        return request(
            ids or [3],
            n=self.count,
            max_new_tokens=self.new_tokens,
            constraint=CONSTRAINTS[self.constraint],
            pin_ttl=self.pin_ttl,
            program=f"program {self.stem}",
            calls_left=self.calls_left,
        )


prompts = st.builds(
    Prompt,
    stem=st.integers(0, len(STEMS) - 1),
    cut=st.integers(0, 70),
    tail=st.lists(st.integers(3, 250), max_size=6).map(tuple),
    count=st.sampled_from([1, 1, 1, 3]),
    constraint=st.integers(0, len(CONSTRAINTS) - 1),
    new_tokens=st.integers(0, 24),
    pin_ttl=st.sampled_from([0.0, 0.0, 0.01, 100.0]),
    calls_left=st.sampled_from([None, 0, 3]),
)
engines = st.fixed_dictionaries(
    {
        "page_size": st.sampled_from([1, 8, 16]),
        "prefix_cache": st.booleans(),
        "schedule_policy": st.sampled_from(get_args(Policy)),
        "eviction_policy": st.sampled_from(get_args(Eviction)),
        "step_tokens": st.sampled_from([1, 3, 16, 64, 512]),
        "max_running": st.sampled_from([1, 2, 8]),
        "kv_tokens": st.sampled_from([160, 192, 256, 4096]),
        "jump_forward": st.booleans(),
    }
)


@cache
def plain_core(arithmetic: Arithmetic) -> Any:
    """What others are measured by: no sharing, no chunks, no jumps."""
    return arithmetic.core(prefix_cache=False, jump_forward=False, step_tokens=4096)


@cache
def alone(arithmetic: Arithmetic, prompt: Prompt) -> list[tuple[Any, ...]]:
    each = prompt.request()
    return outcome(run(plain_core(arithmetic), [each])[each.rid])


def outcome(completions: list[Completion]) -> list[tuple[Any, ...]]:
    return [(c.token_ids, c.text, c.finish) for c in completions]


@settings(max_examples=60, deadline=None)
@given(batch=st.lists(prompts, min_size=1, max_size=7), engine=engines, data=st.data())
def test_tiny_model_equivalence(
    tiny_arithmetic: Arithmetic,
    batch: list[Prompt],
    engine: dict[str, Any],
    data: st.DataObject,
) -> None:
    core = tiny_arithmetic.core(**engine)
    requests = [prompt.request() for prompt in batch]
    late = data.draw(st.integers(0, len(requests)), label="sent at once")
    deltas = []
    for each in requests[:late]:
        core.add(each)
    for each in requests[late:]:
        deltas += core.step()
        core.add(each)
    found = gather(requests, deltas + drain(core))
    for prompt, each in zip(batch, requests, strict=True):
        assert outcome(found[each.rid]) == alone(tiny_arithmetic, prompt)
    assert core.flush_cache()
    assert core.stats().pages_free == core.stats().pages_total


@pytest.mark.parametrize("length", [1, 15, 16, 17, 33])
def test_tiny_model_equals_transformers(tiny: LoadedModel, length: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    oracle = AutoModelForCausalLM.from_pretrained(tiny.path, dtype=torch.float32)
    prompt = [(7 * i) % 200 + 3 for i in range(length)]
    with torch.no_grad():
        expected = oracle.generate(
            torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=2
        )[0, length:].tolist()
    each = request(prompt, max_new_tokens=20)
    assert run(make_core(tiny), [each])[each.rid][0].token_ids == expected
