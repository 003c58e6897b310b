"""Tables of cosines and sines for rotary embeddings, one row for each position.

Frequencies follow the papers and the reference code in transformers: linear (position
interpolation, arXiv 2306.15595), llama3 (Llama 3.1), yarn (arXiv 2309.00071) and longrope
(arXiv 2402.13753).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from phloem.runtime.errors import ModelError
from phloem.runtime.models.config import RopeConfig

MOST_ENTRIES = 1 << 30
"""Four gigabytes: eight million positions of heads of 128."""


def rope_table(rope: RopeConfig, context_length: int) -> Tensor:
    """float32 [context_length, 2, rotated / 2]: cos and sin, scaled by the attention factor.

    Raises:
        ModelError: it would be larger than any model that is served.
    """
    if context_length * rope.rotated > MOST_ENTRIES:
        raise ModelError(
            f"context_length: {context_length} positions of {rope.rotated} rotated dimensions are "
            f"more than the {MOST_ENTRIES} entries that a rope table may have"
        )
    frequencies, scale = FREQUENCIES[rope.kind](rope, context_length)
    angles = torch.arange(context_length, dtype=torch.float32)[:, None] * frequencies
    return torch.stack((angles.cos(), angles.sin()), dim=1) * scale


def base_frequencies(rope: RopeConfig) -> Tensor:
    """theta^(-2 i / rotated), float32 [rotated / 2]."""
    exponents = torch.arange(0, rope.rotated, 2, dtype=torch.int64).float() / rope.rotated
    return 1.0 / rope.theta**exponents


def default(rope: RopeConfig, context_length: int) -> tuple[Tensor, float]:
    return base_frequencies(rope), 1.0


def linear(rope: RopeConfig, context_length: int) -> tuple[Tensor, float]:
    return base_frequencies(rope) / rope.factor, 1.0


def llama3(rope: RopeConfig, context_length: int) -> tuple[Tensor, float]:
    """Slow frequencies are divided by the factor, fast ones kept, those between blended."""
    frequencies = base_frequencies(rope)
    turns = rope.original_context * frequencies / (2 * math.pi)
    span = rope.high_freq_factor - rope.low_freq_factor
    kept = ((turns - rope.low_freq_factor) / span).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / rope.factor), 1.0


def yarn(rope: RopeConfig, context_length: int) -> tuple[Tensor, float]:
    """Interpolate the frequencies that turn seldom within the original context."""

    def dimension(turns: float) -> float:
        base = math.log(rope.original_context / (turns * 2 * math.pi))
        return rope.rotated * base / (2 * math.log(rope.theta))

    low, high = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.rotated - 1)
    ramp = (torch.arange(rope.rotated // 2, dtype=torch.float32) - low) / max(high - low, 1e-3)
    interpolated = ramp.clamp(0, 1)
    frequencies = base_frequencies(rope)
    blended = frequencies * (interpolated / rope.factor + 1 - interpolated)
    return blended, rope.attention_factor or yarn_scale(rope)


def yarn_scale(rope: RopeConfig) -> float:
    """The longer the context, the sharper the attention; DeepSeek's form weighs two such terms."""
    length = 0.1 * math.log(max(rope.factor, 1))
    above, below = rope.attention_scales
    return (length * above + 1) / (length * below + 1) if above and below else length + 1


def longrope(rope: RopeConfig, context_length: int) -> tuple[Tensor, float]:
    """One factor for each frequency: the long ones if the served context exceeds the original.

    The choice is made once, for the context that is served, since cached keys keep their angles.
    """
    long = context_length > rope.original_context
    factors = torch.tensor(rope.long_factors if long else rope.short_factors)
    usual = math.sqrt(1 + math.log(max(rope.factor, 1)) / math.log(rope.original_context))
    return base_frequencies(rope) / factors, rope.attention_factor or usual


FREQUENCIES = {
    "default": default,
    "linear": linear,
    "llama3": llama3,
    "yarn": yarn,
    "longrope": longrope,
}
