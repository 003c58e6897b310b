"""Token bitmaps over logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def apply_mask(logits: Tensor, mask: Tensor, rows: Tensor) -> None:
    """In place: -inf where a token's bit is 0, and for tokens that the mask is too short to have.

    Raises:
        ValueError: ``mask`` and ``rows`` differ in length.
    """
    if len(mask) != len(rows):
        raise ValueError(f"mask has {len(mask)} rows for {len(rows)} rows of logits")
    words = np.ascontiguousarray(mask.cpu().numpy()).view(np.uint8)
    bits = np.unpackbits(words, axis=1, count=logits.shape[1], bitorder="little")
    forbidden = torch.from_numpy(bits == 0).to(logits.device)
    for row, hidden in zip(rows.tolist(), forbidden, strict=True):
        logits[row].masked_fill_(hidden, -torch.inf)
