"""From the arrays of a StepResult to the log-probabilities that requests asked for."""

from __future__ import annotations

import numpy as np

from phloem.runtime.plan import ScorePlan, StepResult
from phloem.runtime.protocol import TokenLogprob
from phloem.runtime.sampling.planner import PromptScore
from phloem.runtime.scheduling.sequence import Sequence


def output_logprob(
    index: int, row: int, seq: Sequence, plan: ScorePlan, result: StepResult
) -> TokenLogprob:
    """The score at ``index``, of the token sampled in ``row``."""
    return token_logprob(int(result.token_ids[row]), index, seq, plan, result)


def prompt_logprobs(score: PromptScore, plan: ScorePlan, result: StepResult) -> list[TokenLogprob]:
    """Scores of the prompt tokens that one span predicted, in order.

    The first token of a prompt is predicted by nothing: its log-probability is None.
    """
    seq = score.seq
    tokens = seq.tokens.view()
    first = []
    if seq.request.logprob_start == 0 and score.start == 1:
        first = [TokenLogprob(token_id=int(tokens[0]), logprob=None)]
    return first + [
        token_logprob(int(tokens[score.start + i]), score.first + i, seq, plan, result)
        for i in range(score.count)
    ]


def token_logprob(
    token: int, index: int, seq: Sequence, plan: ScorePlan, result: StepResult
) -> TokenLogprob:
    count = seq.request.top_logprobs
    return TokenLogprob(
        token_id=token,
        logprob=float(result.logprobs[index]),
        top=pairs(result.top_ids[index, :count], result.top_logprobs[index, :count]),
        chosen=chosen(index, plan, result) if seq.request.token_ids_logprob else (),
    )


def chosen(index: int, plan: ScorePlan, result: StepResult) -> tuple[tuple[int, float], ...]:
    where = np.flatnonzero(plan.chosen_rows == index)
    return pairs(plan.chosen_tokens[where], result.chosen_logprobs[where])


def pairs(tokens: np.ndarray, logprobs: np.ndarray) -> tuple[tuple[int, float], ...]:
    return tuple(zip(tokens.tolist(), logprobs.tolist(), strict=True))
