"""Forbidding tokens by bitmask."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def apply_mask(logits: Tensor, mask: Tensor, rows: Tensor) -> None:
    """In place: logits[rows[i], v] = -inf where bit v of mask[i] is 0, or where it has none."""
    size = logits.shape[-1]
    bits = np.unpackbits(mask.cpu().numpy().view(np.uint8), axis=-1, bitorder="little")
    allowed = torch.zeros(len(mask), size, dtype=torch.bool)
    width = min(size, bits.shape[-1])
    allowed[:, :width] = torch.from_numpy(bits[:, :width]).bool()
    logits[rows] = logits[rows].masked_fill(~allowed.to(logits.device), -torch.inf)
