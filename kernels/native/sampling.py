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
    bits = mask.contiguous()
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
    """See ``Ops.sample``.

    Raises:
        ValueError: rows have no finite logit, or have nan.
    """
    chosen = torch.empty(len(logits), dtype=torch.int64)
    arguments = SampleBatch(
        rows=len(logits),
        vocabulary=logits.shape[1],
        logits=logits.data_ptr(),
        temperature=batch.temperature.data_ptr(),
        top_p=batch.top_p.data_ptr(),
        min_p=batch.min_p.data_ptr(),
        top_k=batch.top_k.data_ptr(),
        seed=batch.seed.data_ptr(),
        position=batch.position.data_ptr(),
        chosen=chosen.data_ptr(),
    )
    engine.library.sample(engine.handle, byref(arguments))
    hopeless = (chosen < 0).nonzero()[:, 0].tolist()
    if hopeless:
        raise ValueError(f"rows {hopeless} of the logits have no finite maximum")
    return chosen
