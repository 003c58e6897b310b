"""Choosing tokens: filters, and draws that depend on (seed, position) alone.

Rows are drawn one by one on the host: a row's choice cannot depend on its neighbours, and at the
size of a vocabulary a row at a time is also what stays in the cache.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phloem.kernels.ops import NO_TOKEN, SamplingBatch
from phloem.kernels.reference.uniform import uniform


def sample(logits: Tensor, batch: SamplingBatch) -> Tensor:
    """float32 [L, V] -> int64 [L]; a row of temperature 0 takes its first largest logit."""
    possible = logits.amax(dim=-1).isfinite()
    tokens = torch.where(possible, logits.argmax(dim=-1), NO_TOKEN)
    rows = ((batch.temperature > 0) & possible).nonzero()[:, 0].tolist()
    if rows:
        points = uniform(batch.seed.cpu().numpy(), batch.position.cpu().numpy())
        for row in rows:
            tokens[row] = draw(
                logits[row].cpu().numpy(),
                temperature=batch.temperature[row].item(),
                top_k=int(batch.top_k[row]),
                top_p=batch.top_p[row].item(),
                min_p=batch.min_p[row].item(),
                point=points[row],
            )
    return tokens


def draw(
    logits: NDArray[np.float32],
    *,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    point: float,
) -> int:
    """Invert the cumulative distribution, in the order of token ids, at ``point`` in [0, 1)."""
    # The largest logit becomes 0 first, so that a tiny temperature cannot overflow.
    weights = np.exp((logits - logits.max()) / np.float32(temperature))
    if top_k < len(weights) or top_p < 1:
        keep_likeliest(weights, top_k, top_p)
    if min_p > 0:
        weights[weights < min_p * weights.max()] = 0
    shares = cumulate(weights)
    # Rounding may carry the target up to the total, which no token's share exceeds.
    target = min(point * shares[-1], np.nextafter(shares[-1], 0))
    # The first share that exceeds the target belongs to a token of positive weight.
    return int(shares.searchsorted(target, side="right"))


def keep_likeliest(weights: NDArray[np.float32], top_k: int, top_p: float) -> None:
    """Set to 0 all but the ``top_k`` largest weights, and of these all but the fewest that reach
    ``top_p`` of their sum. Of equal weights those of the lowest ids stay."""
    limited = top_k < len(weights)
    ranked = np.sort(np.partition(weights, -top_k)[-top_k:] if limited else weights)[::-1]
    if top_p < 1:
        sums = cumulate(ranked)
        ranked = ranked[: sums.searchsorted(top_p * sums[-1]) + 1]
    least = ranked[-1]
    room = len(ranked) - np.count_nonzero(weights > least)
    surplus = np.flatnonzero(weights == least)[room:]
    weights[weights < least] = 0
    weights[surplus] = 0


def cumulate(weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Running sums, by torch: numpy's loop takes several times as long."""
    values = torch.from_numpy(weights.copy())
    sums: NDArray[np.float64] = values.cumsum(0, dtype=torch.float64).numpy()
    return sums
