"""Build the sampling and scoring parts of a StepPlan from the step's spans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from phloem.runtime.plan import NO_SCORES, Floats, Longs, SamplePlan, ScorePlan, StepPlan, lay_out
from phloem.runtime.sampling.edits import logit_edits
from phloem.runtime.scheduling.scheduler import Span
from phloem.runtime.scheduling.sequence import Sequence


@dataclass(frozen=True, slots=True)
class PromptScore:
    """The score at index ``first + i`` of the step's scores is of prompt token ``start + i``."""

    seq: Sequence
    first: int
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A StepPlan and whose results its rows are.

    Attributes:
        sampled: the sequence of each sampled row.
        output_scores: index of the score of each sampled row; -1 where none is wanted.
        prompt_scores: which scores are of prompt tokens.
    """

    plan: StepPlan
    sampled: list[Sequence]
    output_scores: list[int]
    prompt_scores: list[PromptScore]


def plan_step(spans: list[Span], page_size: int, eos_ids: tuple[int, ...]) -> PlannedStep:
    """Lay the spans out and say which rows to sample and score."""
    layout = lay_out(spans, page_size)
    sampled: list[Sequence] = []
    rows: list[int] = []
    for span, end in zip(spans, layout.query_start[1:], strict=True):
        if span.reaches_end:
            group = [seq for seq in (span.seq, *span.seq.siblings) if seq.remaining > 0]
            sampled += group
            rows += [int(end) - 1] * len(group)
    scoring = ScoreRows(rows)
    output_scores = [scoring.add_sampled(row, seq) for row, seq in enumerate(sampled)]
    prompt_scores = [
        scoring.add_prompt(span, int(start))
        for span, start in zip(spans, layout.query_start, strict=False)
        if span.seq.scores_prompt and not span.seq.prompt_scored
    ]
    plan = StepPlan(
        token_ids=layout.token_ids,
        positions=layout.positions,
        slots=layout.slots,
        query_start=layout.query_start,
        kv_len=layout.kv_len,
        page_table=layout.page_table,
        page_size=page_size,
        copy_source=layout.copy_source,
        copy_target=layout.copy_target,
        logit_rows=np.array(scoring.logit_rows, dtype=np.int64),
        sampling=sample_plan(sampled, eos_ids),
        scores=scoring.plan(),
    )
    return PlannedStep(plan, sampled, output_scores, prompt_scores)


def sample_plan(sequences: list[Sequence], eos_ids: tuple[int, ...]) -> SamplePlan:
    return SamplePlan(
        *constants(tuple(sequences)),
        position=np.array([len(seq.tokens) for seq in sequences], dtype=np.int64),
        edits=logit_edits(sequences, eos_ids),
    )


@lru_cache(maxsize=1)
def constants(sequences: tuple[Sequence, ...]) -> tuple[Floats, Longs, Floats, Floats, Longs]:
    """What does not change from step to step while the same sequences decode."""
    params = [seq.params for seq in sequences]
    return (
        np.array([p.temperature for p in params], dtype=np.float32),
        np.array([p.top_k if p.top_k > 0 else 1 << 30 for p in params], dtype=np.int64),
        np.array([p.top_p for p in params], dtype=np.float32),
        np.array([p.min_p for p in params], dtype=np.float32),
        np.array([seq.seed for seq in sequences], dtype=np.int64),
    )


class ScoreRows:
    """Collects the rows to score; prompt rows are appended to the logit rows."""

    def __init__(self, logit_rows: list[int]) -> None:
        self.logit_rows = list(logit_rows)
        self._rows: list[int] = []
        self._targets: list[int] = []
        self._top = 0
        self._chosen: list[tuple[int, int]] = []

    def add_sampled(self, row: int, seq: Sequence) -> int:
        """Score the token sampled in ``row``, if its request wants that; the score's index."""
        if not seq.request.return_logprob:
            return -1
        return self._add(row, -1, seq)

    def add_prompt(self, span: Span, first_row: int) -> PromptScore:
        """Score the prompt tokens that follow the span's tokens (and were asked for)."""
        seq = span.seq
        wanted = seq.request.logprob_start
        assert wanted is not None
        start = max(seq.computed + 1, wanted + len(seq.prompt_logprobs))
        stop = min(seq.computed + span.count + 1, seq.prompt_length)
        first = len(self._rows)
        for position in range(start, stop):
            self.logit_rows.append(first_row + position - 1 - seq.computed)
            self._add(len(self.logit_rows) - 1, int(seq.tokens.view()[position]), seq)
        return PromptScore(seq, first, start, max(stop - start, 0))

    def _add(self, row: int, target: int, seq: Sequence) -> int:
        index = len(self._rows)
        self._rows.append(row)
        self._targets.append(target)
        self._top = max(self._top, seq.request.top_logprobs)
        self._chosen += [(index, token) for token in seq.request.token_ids_logprob]
        return index

    def plan(self) -> ScorePlan:
        if not self._rows:
            return NO_SCORES
        chosen = np.array(self._chosen, dtype=np.int64).reshape(-1, 2)
        return ScorePlan(
            rows=np.array(self._rows, dtype=np.int64),
            targets=np.array(self._targets, dtype=np.int64),
            top=self._top,
            chosen_rows=chosen[:, 0],
            chosen_tokens=chosen[:, 1],
        )
