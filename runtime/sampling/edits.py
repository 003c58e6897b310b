"""Penalties, biases and forbidden tokens of the sampled rows as sparse logit edits."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

import numpy as np

from phloem.runtime.plan import NO_FLOATS, NO_LONGS, Floats, LogitEdits, Longs
from phloem.runtime.scheduling.sequence import Sequence


@dataclass(slots=True)
class Triples:
    """Grows (row, token, value) triples a row at a time."""

    rows: list[Longs] = field(default_factory=list)
    tokens: list[Longs] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    def add(self, row: int, tokens: Longs, values: Floats | float) -> None:
        self.rows.append(np.full(len(tokens), row, dtype=np.int64))
        self.tokens.append(np.asarray(tokens, dtype=np.int64))
        self.values.append(np.broadcast_to(np.asarray(values, dtype=np.float32), len(tokens)))

    def arrays(self) -> tuple[Longs, Longs, Floats]:
        if not self.rows:
            return NO_LONGS, NO_LONGS, NO_FLOATS
        return np.concatenate(self.rows), np.concatenate(self.tokens), np.concatenate(self.values)


def logit_edits(sequences: Seq[Sequence], eos_ids: tuple[int, ...]) -> LogitEdits:
    """Edits for the next token of each sequence; row i is ``sequences[i]``."""
    repetition, added = Triples(), Triples()
    for row, seq in enumerate(sequences):
        add_penalties(row, seq, repetition, added)
        bias = seq.params.logit_bias
        if bias:
            added.add(row, np.fromiter(bias, np.int64), np.fromiter(bias.values(), np.float32))
        if must_continue(seq):
            ends = np.array([*eos_ids, *seq.params.stop_token_ids], dtype=np.int64)
            added.add(row, ends, -np.inf)
    return LogitEdits(*repetition.arrays(), *added.arrays())


def add_penalties(row: int, seq: Sequence, repetition: Triples, added: Triples) -> None:
    """Frequency and presence count generated tokens (OpenAI); repetition all known ones (CTRL)."""
    params = seq.params
    if params.frequency_penalty or params.presence_penalty:
        tokens, counts = np.unique(seq.output_ids, return_counts=True)
        lowered = counts * params.frequency_penalty + params.presence_penalty
        added.add(row, tokens.astype(np.int64), -lowered.astype(np.float32))
    if params.repetition_penalty != 1.0:
        known = np.unique(seq.tokens.view()).astype(np.int64)
        repetition.add(row, known, params.repetition_penalty)


def must_continue(seq: Sequence) -> bool:
    """Whether ending now would be too early; a grammar that has ended wins over the minimum."""
    if seq.matcher is not None and seq.matcher.stopped:
        return False
    return seq.generated < seq.params.min_new_tokens
