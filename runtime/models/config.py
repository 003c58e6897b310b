"""A decoder's shape as plain data: what a model definition may depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RopeKind = Literal["default", "linear", "llama3", "yarn", "longrope"]
Activation = Literal["silu", "gelu"]


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary position embedding of one kind of layer.

    Attributes:
        theta: base of the frequencies.
        rotated: leading dimensions of a head that are rotated.
        kind: how the frequencies are changed for long contexts; ``rope.py`` says how.
        factor: by how much positions are compressed.
        original_context: the context length that the model was first trained with.
        low_freq_factor, high_freq_factor: of "llama3".
        beta_fast, beta_slow, truncate, attention_scales: of "yarn".
        attention_factor: cos and sin are multiplied by it; None takes the kind's own.
        short_factors, long_factors: of "longrope", one for each frequency.
    """

    theta: float
    rotated: int
    kind: RopeKind = "default"
    factor: float = 1.0
    original_context: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    attention_scales: tuple[float, float] = (0.0, 0.0)
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer with grouped-query attention.

    Attributes:
        windows: for each layer the sliding window in tokens, None for full attention.
        rope: for layers with full attention; ``local_rope`` for those with a window, where the
            model tells them apart.
        attention_scale: factor of the scores.
        attention_softcap, logit_softcap: c in c * tanh(x / c), None for none.
        embedding_scale: factor of the embeddings.
        qk_norm: heads of queries and keys are normalised before they are rotated.
        sandwich_norms: the outputs of attention and MLP are normalised too (Gemma).
        unit_offset_norms: norms multiply by 1 + weight (Gemma).
        fused_weights: the checkpoint holds q, k, v as one tensor, and gate and up as one.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    context_length: int
    tie_embeddings: bool
    rope: RopeConfig
    attention_scale: float
    windows: tuple[int | None, ...]
    local_rope: RopeConfig | None = None
    activation: Activation = "silu"
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    embedding_scale: float = 1.0
    qk_norm: bool = False
    sandwich_norms: bool = False
    unit_offset_norms: bool = False
    fused_weights: bool = False


@dataclass(frozen=True, slots=True)
class KVGeometry:
    """The shape of what a model keeps per token."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
