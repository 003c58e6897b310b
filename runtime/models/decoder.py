"""The decoder-only transformer of the Llama, Mistral, Qwen, Phi-3 and Gemma families.

They differ in norms, biases, activations and windows, which ModelConfig says; the order of ops is
one and the same. Only ops touch tensors, and a step is a fixed list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import Embedding, KVLayer, Linear, Ops
from phloem.runtime.models.config import KVGeometry, ModelConfig
from phloem.runtime.models.rope import rope_table
from phloem.runtime.models.weights import Weights


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer; norms that the family does not have are None."""

    attention_norm: Tensor
    qkv: Linear
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Linear
    attention_out_norm: Tensor | None
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear
    mlp_out_norm: Tensor | None
    window: int | None
    rope: Tensor


@dataclass(frozen=True, slots=True)
class Decoder:
    """A loaded model; see ``runtime.models.base.Model``."""

    config: ModelConfig
    ops: Ops
    embedding: Embedding
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Linear
    dtype: torch.dtype
    device: torch.device

    @property
    def kv_geometry(self) -> KVGeometry:
        c = self.config
        return KVGeometry(c.num_layers, c.num_kv_heads, c.head_dim)

    def logits(
        self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer], rows: Tensor
    ) -> Tensor:
        """See Model.logits."""
        hidden = self._hidden(token_ids, batch, kv)
        return self.ops.logits(hidden, rows, self.head, self.config.logit_softcap)

    def _hidden(self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        """Final hidden states [T, M]. Each norm is fused with the addition before it."""
        ops, eps = self.ops, self.config.norm_eps
        residual = ops.embedding(token_ids, self.embedding, self.config.embedding_scale)
        x = ops.rms_norm(residual, self.layers[0].attention_norm, eps)
        following = [layer.attention_norm for layer in self.layers[1:]] + [self.norm]
        for layer, pages, next_norm in zip(self.layers, kv, following, strict=True):
            x = self._attention(x, layer, pages, batch)
            x, residual = ops.add_rms_norm(x, residual, layer.mlp_norm, eps)
            x = self._mlp(x, layer)
            x, residual = ops.add_rms_norm(x, residual, next_norm, eps)
        return x

    def _attention(self, x: Tensor, layer: Layer, kv: KVLayer, batch: RaggedBatch) -> Tensor:
        ops, c = self.ops, self.config
        q_size, kv_size = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
        q, k, v = ops.linear(x, layer.qkv).tensor_split((q_size, q_size + kv_size), dim=-1)
        q = q.view(-1, c.num_heads, c.head_dim)
        k = k.view(-1, c.num_kv_heads, c.head_dim)
        v = v.view(-1, c.num_kv_heads, c.head_dim)
        if layer.q_norm is not None and layer.k_norm is not None:
            q = ops.rms_norm(q, layer.q_norm, c.norm_eps)
            k = ops.rms_norm(k, layer.k_norm, c.norm_eps)
        q = ops.rope_and_cache(q, k, v, layer.rope, kv, batch)
        x = ops.attention(
            q,
            kv,
            batch,
            scale=c.attention_scale,
            window=layer.window,
            softcap=c.attention_softcap,
        )
        return self._normed(ops.linear(x.flatten(1), layer.output), layer.attention_out_norm)

    def _mlp(self, x: Tensor, layer: Layer) -> Tensor:
        gate_up = self.ops.linear(x, layer.gate_up)
        gated = self.ops.silu_mul if self.config.activation == "silu" else self.ops.gelu_mul
        return self._normed(self.ops.linear(gated(gate_up), layer.down), layer.mlp_out_norm)

    def _normed(self, x: Tensor, norm: Tensor | None) -> Tensor:
        return x if norm is None else self.ops.rms_norm(x, norm, self.config.norm_eps)


def load_decoder(weights: Weights, config: ModelConfig) -> Decoder:
    """Read the weights into their places.

    Raises:
        ModelError: a tensor is missing, has another shape, or has no place.
    """
    embedding = weights.embedding("model.embed_tokens", config.vocab_size, config.hidden_size)
    if config.tie_embeddings:
        weights.ignore("lm_head.weight")
        head = weights.ops.tied_linear(embedding)
    else:
        head = weights.linear(["lm_head"], [config.vocab_size], config.hidden_size, bias=False)
    decoder = Decoder(
        config=config,
        ops=weights.ops,
        embedding=embedding,
        layers=load_layers(weights, config),
        norm=load_norm(weights, config, "model.norm", config.hidden_size),
        head=head,
        dtype=weights.dtype,
        device=weights.device,
    )
    weights.finish()
    return decoder


def load_layers(weights: Weights, config: ModelConfig) -> tuple[Layer, ...]:
    table = rope_table(config.rope, config.context_length).to(weights.device)
    local = config.local_rope
    local_table = (
        table if local is None else rope_table(local, config.context_length).to(weights.device)
    )
    return tuple(
        load_layer(weights, config, f"model.layers.{i}", window, local_table if window else table)
        for i, window in enumerate(config.windows)
    )


def load_layer(
    weights: Weights, c: ModelConfig, prefix: str, window: int | None, rope: Tensor
) -> Layer:
    def norm(name: str, size: int = c.hidden_size) -> Tensor:
        return load_norm(weights, c, f"{prefix}.{name}", size)

    hidden, inner = c.hidden_size, c.intermediate_size
    q_size, kv_size = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    qkv = [f"{attention}.{name}_proj" for name in "qkv"], [q_size, kv_size, kv_size]
    gate_up = [f"{mlp}.gate_proj", f"{mlp}.up_proj"], [inner, inner]
    if c.fused_weights:
        qkv = [f"{attention}.qkv_proj"], [q_size + 2 * kv_size]
        gate_up = [f"{mlp}.gate_up_proj"], [2 * inner]
    sandwich = c.sandwich_norms
    return Layer(
        attention_norm=norm("input_layernorm"),
        qkv=weights.linear(*qkv, hidden, bias=c.qkv_bias),
        q_norm=norm("self_attn.q_norm", c.head_dim) if c.qk_norm else None,
        k_norm=norm("self_attn.k_norm", c.head_dim) if c.qk_norm else None,
        output=weights.linear([f"{attention}.o_proj"], [hidden], q_size, bias=c.output_bias),
        attention_out_norm=norm("post_attention_layernorm") if sandwich else None,
        mlp_norm=norm("pre_feedforward_layernorm" if sandwich else "post_attention_layernorm"),
        gate_up=weights.linear(*gate_up, hidden, bias=c.mlp_bias),
        down=weights.linear([f"{mlp}.down_proj"], [hidden], inner, bias=c.mlp_bias),
        mlp_out_norm=norm("post_feedforward_layernorm") if sandwich else None,
        window=window,
        rope=rope,
    )


def load_norm(weights: Weights, config: ModelConfig, name: str, size: int) -> Tensor:
    """A norm's weight as the factor that it multiplies by."""
    weight = weights.tensor(f"{name}.weight", size, dtype=torch.float32)
    return weight + 1 if config.unit_offset_norms else weight
