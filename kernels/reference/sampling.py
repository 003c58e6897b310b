"""Choosing tokens: filters, and draws that depend on (seed, position) alone.

A draw inverts the cumulative distribution at one uniform number, which is a hash of the row's seed
and position (SplitMix64; Steele, Lea and Flood, 2014). So a row draws the same token whatever else
is in the batch, and again when it is computed again.
"""

from __future__ import annotations

import torch
from torch import Tensor

from phloem.kernels.ops import SamplingBatch


def sample(logits: Tensor, batch: SamplingBatch) -> Tensor:
    """float32 [L, V] -> int64 [L]; a row of temperature 0 takes its first largest logit."""
    tokens = logits.argmax(dim=-1)
    drawn = (batch.temperature > 0).nonzero()[:, 0]
    if len(drawn):
        tokens[drawn] = draw(logits[drawn], select(batch, drawn))
    return tokens


def select(batch: SamplingBatch, rows: Tensor) -> SamplingBatch:
    """The parameters of some rows."""
    return SamplingBatch(
        temperature=batch.temperature[rows],
        top_k=batch.top_k[rows],
        top_p=batch.top_p[rows],
        min_p=batch.min_p[rows],
        seed=batch.seed[rows],
        position=batch.position[rows],
    )


def draw(logits: Tensor, batch: SamplingBatch) -> Tensor:
    """One token of each row, all with a temperature above 0."""
    # The largest logit goes to 0 first, so that a tiny temperature cannot overflow.
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    probabilities = torch.softmax(shifted / batch.temperature[:, None], dim=-1)
    uniforms = uniform(batch.seed, batch.position)
    tokens = invert(probabilities, uniforms)
    size = logits.shape[-1]
    limited = (batch.top_k < size) | (batch.top_p < 1) | (batch.min_p > 0)
    rows = limited.nonzero()[:, 0]
    if len(rows):
        kept, order = keep(probabilities[rows], select(batch, rows))
        chosen = invert(kept, uniforms[rows])
        tokens[rows] = order.gather(1, chosen[:, None])[:, 0]
    return tokens


def keep(probabilities: Tensor, batch: SamplingBatch) -> tuple[Tensor, Tensor]:
    """Probabilities in falling order with those outside the filters set to 0, and their ids.

    top_p keeps the fewest tokens that reach it, of those that top_k kept; min_p is relative to
    the likeliest token. That one is always kept.
    """
    kept, order = probabilities.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(kept.shape[-1], device=kept.device)
    kept = kept.masked_fill(rank >= batch.top_k[:, None], 0)
    before = kept.cumsum(-1) - kept
    reached = before >= batch.top_p[:, None] * kept.sum(-1, keepdim=True)
    kept = kept.masked_fill(reached & (rank > 0), 0)
    return kept.masked_fill(kept < batch.min_p[:, None] * kept[:, :1], 0), order


def invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The first index whose cumulative weight exceeds uniform * total: never one of weight 0."""
    cumulative = weights.double().cumsum(-1)
    total = cumulative[:, -1:]
    below = torch.nextafter(total, torch.zeros_like(total))
    target = torch.minimum(uniforms[:, None] * total, below)
    return torch.searchsorted(cumulative, target, right=True)[:, 0]


def uniform(seed: Tensor, position: Tensor) -> Tensor:
    """float64 in [0, 1) from int64 seeds and positions."""
    state = mix(seed) + position * GOLDEN
    return (shift(mix(state), 11)).double() * 2.0**-53


GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
SECOND = 0x94D049BB133111EB - (1 << 64)
"""SplitMix64's constants as signed numbers; int64 products wrap as unsigned ones do."""


def mix(x: Tensor) -> Tensor:
    x = x + GOLDEN
    x = (x ^ shift(x, 30)) * FIRST
    x = (x ^ shift(x, 27)) * SECOND
    return x ^ shift(x, 31)


def shift(x: Tensor, bits: int) -> Tensor:
    """Shift right without copying the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
