"""The step's token masks, one row per constrained sequence."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np

from phloem.runtime.generation import fail
from phloem.runtime.plan import Masks
from phloem.runtime.scheduling.buffer import Ints
from phloem.runtime.scheduling.sequence import Sequence


def fill_masks(sampled: Seq[Sequence], vocab_size: int) -> Masks | None:
    """Masks for the sampled rows; None if no row is constrained.

    A sequence whose grammar fails is marked as failed, and its row left unmasked: what is
    sampled there is thrown away.
    """
    constrained = [row for row, seq in enumerate(sampled) if seq.matcher is not None]
    if not constrained:
        return None
    bits = np.zeros((len(constrained), -(-vocab_size // 32)), dtype=np.int32)
    for mask, row in zip(bits, constrained, strict=True):
        fill_row(sampled[row], mask)
    return Masks(bits, np.array(constrained, dtype=np.int64))


def fill_row(seq: Sequence, mask: Ints) -> None:
    assert seq.matcher is not None
    if seq.forced:
        allow_only(mask, seq.forced[0])
        return
    try:
        seq.matcher.fill(mask)
    except Exception as error:
        fail(seq, error)
        mask[:] = -1


def allow_only(mask: Ints, token: int) -> None:
    mask[:] = 0
    mask.view(np.uint32)[token // 32] = np.uint32(1 << (token % 32))
