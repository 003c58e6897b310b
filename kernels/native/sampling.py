"""Masks and draws over logits, all rows in one call."""

from __future__ import annotations

from ctypes import byref

import torch
from torch import Tensor

from phloem.kernels.native.engine import NativeEngine
from phloem.kernels.native.library import MaskBatch, SampleBatch
from phloem.kernels.ops import SamplingBatch


def apply_mask(engine: NativeEngine, logits: Tensor, mask: Tensor, rows: Tensor) -> None:
    """See ``Ops.apply_mask``.

    Raises:
        ValueError: ``mask`` and ``rows`` differ in length.
    """
    if len(mask) != len(rows):
        raise ValueError(f"mask has {len(mask)} rows for {len(rows)} rows of logits")
    bits, rows = mask.contiguous(), rows.contiguous()
    check_rows(logits)
    batch = MaskBatch(
        count=len(rows),
        words=bits.shape[1],
        bits=bits.data_ptr(),
        rows=rows.data_ptr(),
        logits=logits.data_ptr(),
        vocabulary=logits.shape[1],
    )
    engine.library.mask(engine.handle, byref(batch))


def sample(engine: NativeEngine, logits: Tensor, batch: SamplingBatch) -> Tensor:
    """See ``Ops.sample``."""
    check_rows(logits)
    rows, vocabulary = logits.shape
    chosen = torch.empty(rows, dtype=torch.int64)
    parameters = [
        each.contiguous()
        for each in (
            batch.temperature, batch.top_p, batch.min_p, batch.top_k, batch.seed, batch.position,
        )
    ]  # fmt: skip
    pointers = (each.data_ptr() for each in parameters)
    arguments = SampleBatch(rows, vocabulary, logits.data_ptr(), *pointers, chosen.data_ptr())
    engine.library.sample(engine.handle, byref(arguments))
    return chosen


def check_rows(logits: Tensor) -> None:
    """Check that rows lie one behind the other, as the library takes them.

    Raises:
        ValueError: they do not.
    """
    if not logits.is_contiguous():
        raise ValueError("logits must be contiguous: they are changed in place")
