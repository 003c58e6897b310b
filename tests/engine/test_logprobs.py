"""Log-probabilities of prompts and outputs against transformers, however they are computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness import make_core, request, run, run_alone
from transformers import AutoModelForCausalLM

from phloem.runtime.bootstrap import LoadedModel

PROMPT = [(11 * i) % 190 + 5 for i in range(45)]


@pytest.fixture(scope="module")
def expected(tiny: LoadedModel) -> np.ndarray:
    """Log-probability of each prompt token but the first."""
    oracle = AutoModelForCausalLM.from_pretrained(tiny.path, dtype=torch.float32)
    with torch.no_grad():
        logprobs = oracle(torch.tensor([PROMPT])).logits[0].log_softmax(-1)
    return logprobs[:-1].gather(1, torch.tensor(PROMPT[1:])[:, None])[:, 0].numpy()


@pytest.mark.parametrize("start", [0, 1, 2, 20, 44, 45])
@pytest.mark.parametrize("step_tokens", [7, 512])
@pytest.mark.parametrize("warm", [False, True])
def test_prompt_logprobs_equal_the_oracle(
    tiny: LoadedModel, expected: np.ndarray, start: int, step_tokens: int, warm: bool
) -> None:
    core = make_core(tiny, step_tokens=step_tokens)
    if warm:
        run_alone(core, request(PROMPT, max_new_tokens=3))
    each = request(PROMPT, return_logprob=True, logprob_start=start, max_new_tokens=2)
    done = run_alone(core, each)[0]
    assert [score.token_id for score in done.prompt_logprobs] == PROMPT[start:]
    values = [score.logprob for score in done.prompt_logprobs]
    if start == 0:
        assert values.pop(0) is None
    np.testing.assert_allclose(values, expected[max(start, 1) - 1 :], atol=1e-4)
    assert len(done.logprobs) == len(done.token_ids)


def test_an_output_scores_the_same_as_a_prompt(tiny: LoadedModel) -> None:
    core = make_core(tiny)
    each = request(PROMPT, return_logprob=True, max_new_tokens=12, ignore_eos=True)
    done = run_alone(core, each)[0]
    whole = request(
        PROMPT + done.token_ids, return_logprob=True, logprob_start=len(PROMPT), max_new_tokens=0
    )
    scored = run_alone(core, whole)[0].prompt_logprobs
    assert [score.token_id for score in scored] == done.token_ids
    np.testing.assert_allclose(
        [score.logprob for score in scored], [score.logprob for score in done.logprobs], atol=1e-4
    )


def test_scores_survive_retraction(tiny: LoadedModel) -> None:
    each = [
        request(
            [5 + i] * 30, return_logprob=True, logprob_start=4, max_new_tokens=40, ignore_eos=True
        )
        for i in range(4)
    ]
    crowded = run(make_core(tiny, kv_tokens=192), each)
    roomy = run(make_core(tiny), each)
    assert sum(c.retractions for done in crowded.values() for c in done) > 0
    for rid, done in roomy.items():
        for field in ("logprobs", "prompt_logprobs"):
            ours, theirs = getattr(crowded[rid][0], field), getattr(done[0], field)
            assert [s.token_id for s in ours] == [s.token_id for s in theirs]
            np.testing.assert_allclose(
                [s.logprob for s in ours], [s.logprob for s in theirs], atol=1e-4
            )
