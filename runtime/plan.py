"""One step as plain arrays: what the executor needs, and nothing that it has to look up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from phloem.runtime.scheduling.buffer import Ints
from phloem.runtime.scheduling.scheduler import Span

Longs = NDArray[np.int64]
Floats = NDArray[np.float32]

NO_LONGS: Longs = np.empty(0, dtype=np.int64)
NO_FLOATS: Floats = np.empty(0, dtype=np.float32)
"""Most steps edit, score and copy nothing: for them nothing is made anew."""


@dataclass(frozen=True, slots=True)
class LogitEdits:
    """Sparse changes to the logits of the sampled rows, as (row, token, value) triples.

    ``repetition``: a positive logit is divided by the value, a negative one multiplied (CTRL,
    arXiv 1909.05858). ``added``: the value is added after that; minus infinity forbids.
    """

    repetition_rows: Longs
    repetition_tokens: Longs
    repetition_values: Floats
    added_rows: Longs
    added_tokens: Longs
    added_values: Floats


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """Parameters of the S sampled rows: the first S of the plan's logit rows."""

    temperature: Floats
    top_k: Longs
    top_p: Floats
    min_p: Floats
    seed: Longs
    position: Longs
    edits: LogitEdits


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """Log-probabilities wanted of W logit rows.

    Attributes:
        rows: int64 [W], indices of the plan's logit rows.
        targets: int64 [W], the token to score, or -1 for the one sampled in the row.
        top: how many of the likeliest tokens to report for each.
        chosen_rows, chosen_tokens: int64 [C], further (index into ``rows``, token) pairs.
    """

    rows: Longs
    targets: Longs
    top: int
    chosen_rows: Longs
    chosen_tokens: Longs


NO_SCORES = ScorePlan(NO_LONGS, NO_LONGS, 0, NO_LONGS, NO_LONGS)


@dataclass(frozen=True, slots=True)
class Masks:
    """Allowed tokens of M of the sampled rows: int32 [M, ceil(V / 32)] and int64 [M]."""

    bits: Ints
    rows: Longs


@dataclass(frozen=True, slots=True)
class StepPlan:
    """T tokens of R sequences to compute, and L rows of logits to make.

    Attributes:
        token_ids, positions, slots: int64 [T]; see kernels.batch.RaggedBatch.
        query_start: int32 [R + 1]; kv_len: int32 [R]; page_table: int32 [R, P].
        copy_source, copy_target: int64 [C], pages to copy before the step writes.
        logit_rows: int64 [L], rows of the T tokens: the sampled ones first.
    """

    token_ids: Longs
    positions: Longs
    slots: Longs
    query_start: Ints
    kv_len: Ints
    page_table: Ints
    page_size: int
    copy_source: Longs
    copy_target: Longs
    logit_rows: Longs
    sampling: SamplePlan
    scores: ScorePlan


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step made.

    Attributes:
        token_ids: int64 [S], sampled tokens.
        logprobs: float32 [W], of ``ScorePlan.targets``.
        top_ids, top_logprobs: [W, top].
        chosen_logprobs: float32 [C].
    """

    token_ids: Longs
    logprobs: Floats
    top_ids: Longs
    top_logprobs: Floats
    chosen_logprobs: Floats


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the spans' tokens sit: the first part of a StepPlan."""

    token_ids: Longs
    positions: Longs
    slots: Longs
    query_start: Ints
    kv_len: Ints
    page_table: Ints
    copy_source: Longs
    copy_target: Longs


def lay_out(spans: list[Span], page_size: int) -> Layout:
    """Concatenate the spans' tokens and look up the slots that they write."""
    kv_len = [span.seq.computed + span.count for span in spans]
    runs = single_tokens if sum(span.count for span in spans) == len(spans) else token_runs
    token_ids, positions, slots = runs(spans, page_size)
    copies = [copy for span in spans for copy in span.copies]
    return Layout(
        token_ids=token_ids,
        positions=positions,
        slots=slots,
        query_start=np.array([0, *accumulate(span.count for span in spans)], dtype=np.int32),
        kv_len=np.array(kv_len, dtype=np.int32),
        page_table=page_table(spans, kv_len, page_size),
        copy_source=longs([copy.source for copy in copies]),
        copy_target=longs([copy.target for copy in copies]),
    )


def longs(values: list[int]) -> Longs:
    return np.array(values, dtype=np.int64) if values else NO_LONGS


def token_runs(spans: list[Span], page_size: int) -> tuple[Longs, Longs, Longs]:
    """Token ids, positions and slots of spans of any length."""
    tokens, positions, slots = [], [], []
    for span in spans:
        seq, end = span.seq, span.seq.computed + span.count
        tokens.append(seq.tokens.view()[seq.computed : end])
        positions.append(np.arange(seq.computed, end))
        pages = seq.pages.view()[positions[-1] // page_size].astype(np.int64)
        slots.append(pages * page_size + positions[-1] % page_size)
    return (
        np.concatenate(tokens, dtype=np.int64),
        np.concatenate(positions),
        np.concatenate(slots),
    )


def single_tokens(spans: list[Span], page_size: int) -> tuple[Longs, Longs, Longs]:
    """The same for spans of one token: most steps are such, and few numbers are faster by hand."""
    tokens, positions, slots = [], [], []
    for span in spans:
        seq, position = span.seq, span.seq.computed
        tokens.append(seq.tokens[position])
        positions.append(position)
        slots.append(seq.pages[position // page_size] * page_size + position % page_size)
    return (
        np.array(tokens, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(slots, dtype=np.int64),
    )


def page_table(spans: list[Span], kv_len: list[int], page_size: int) -> Ints:
    """int32 [R, P], short rows padded with page 0."""
    used = [-(-length // page_size) for length in kv_len]
    table = np.zeros((len(spans), max(used)), dtype=np.int32)
    for row, span, pages in zip(table, spans, used, strict=True):
        row[:pages] = span.seq.pages.view()[:pages]
    return table
