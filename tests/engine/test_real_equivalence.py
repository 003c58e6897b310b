"""The default model: 64 prompts, greedy, the same tokens however they are computed."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from harness import Arithmetic, request, run
from transformers import AutoModelForCausalLM

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.engine import EngineCore
from phloem.runtime.scheduling.admission import LOWEST_FRACTION

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NEW_TOKENS = 16
SYSTEM = (
    "You are a careful assistant. Answer briefly and only with what you know. "
    "If you do not know, say so. Use plain words and short sentences. "
)
TOPICS = ("rivers", "bread", "bees", "iron", "music", "chess", "rain", "maps")
OPENINGS = (
    "Write one sentence about {}.",
    "Why do people care about {}?",
    "List three facts about {}:\n1.",
    "The history of {} began",
)
TEXTS = [
    (SYSTEM if shared else "") + opening.format(topic)
    for shared in (True, False)
    for topic in TOPICS
    for opening in OPENINGS
]


@cache
def prompts(real: LoadedModel) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(real.tokenizer.encode(text)) for text in TEXTS)


def greedy(core: EngineCore, real: LoadedModel) -> list[list[int]]:
    """Output tokens of each prompt, all submitted at once."""
    batch = [
        request(prompt, max_new_tokens=NEW_TOKENS, ignore_eos=True) for prompt in prompts(real)
    ]
    done = run(core, batch)
    return [done[each.rid][0].token_ids for each in batch]


@cache
def one_by_one(way: Arithmetic) -> list[list[int]]:
    return greedy(way.core(max_running=1, prefix_cache=False), way.loaded)


def test_the_prompts_are_64() -> None:
    assert len(set(TEXTS)) == 64


@pytest.mark.parametrize(
    ("prefix_cache", "max_running", "step_tokens"),
    [(True, 1, 64), (True, 8, 64), (True, 8, 4096), (False, 8, 64), (False, 8, 4096)],
)
def test_cache_batch_and_chunk_equivalence(
    real_arithmetic: Arithmetic, prefix_cache: bool, max_running: int, step_tokens: int
) -> None:
    """Against uncached, alone and whole, cached or not, alone or batched, chunked or not."""
    core = real_arithmetic.core(
        prefix_cache=prefix_cache, max_running=max_running, step_tokens=step_tokens
    )
    assert greedy(core, real_arithmetic.loaded) == one_by_one(real_arithmetic)


def test_retraction_equivalence(real_arithmetic: Arithmetic) -> None:
    core = real_arithmetic.core(kv_tokens=256, max_running=8, max_wait=0.0)
    core.scheduler.reserve.fraction = LOWEST_FRACTION  # as after many steps without a shortage
    assert greedy(core, real_arithmetic.loaded) == one_by_one(real_arithmetic)
    assert core.stats().retracted_total > 0


def test_transformers_equivalence(real_float32: Arithmetic) -> None:
    real = real_float32.loaded
    folder, _, file = real.path.rpartition("/")
    oracle = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    expected = []
    for prompt in prompts(real):
        ids = torch.tensor([prompt])
        with torch.no_grad():
            whole = oracle.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=NEW_TOKENS,
                min_new_tokens=NEW_TOKENS,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        expected.append(whole[0, len(prompt) :].tolist())
    assert one_by_one(real_float32) == expected
