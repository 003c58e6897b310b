"""GGUF tensor names to Hugging Face names, and what the two layouts differ in."""

from __future__ import annotations

import re

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_PHI3_BLOCK = _BLOCK | {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
_GEMMA_BLOCK = _BLOCK | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
BLOCKS = {
    "llama": _BLOCK,
    "qwen2": _BLOCK,
    "qwen3": _BLOCK,
    "phi3": _PHI3_BLOCK,
    "gemma2": _GEMMA_BLOCK,
    "gemma3": _GEMMA_BLOCK,
}
"""Per GGUF architecture: the name inside a block -> the name inside a decoder layer."""

IN_CONFIG = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}
"""Tensors that Hugging Face keeps in the config."""

_PARTS = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<part>\w+)\.(?P<leaf>weight|bias)")


def hf_name(architecture: str, name: str) -> str | None:
    """The Hugging Face name of GGUF tensor ``name``; None if it has none."""
    match = _PARTS.fullmatch(name)
    if match is None:
        return None
    layer, part, leaf = match["layer"], match["part"], match["leaf"]
    if layer is None:
        return f"{_TOP[part]}.{leaf}" if part in _TOP else None
    block = BLOCKS[architecture]
    return f"model.layers.{layer}.{block[part]}.{leaf}" if part in block else None


def interleaved_heads(architecture: str, name: str) -> str | None:
    """The config key that counts the heads of a tensor whose rows are stored for paired rotation.

    llama.cpp rotates neighbouring dimensions of the llama architecture, Hugging Face dimension i
    together with i + r / 2, so its converter interleaves the two halves of each Q and K head.
    """
    if architecture != "llama":
        return None
    if ".self_attn.q_proj." in name:
        return "num_attention_heads"
    return "num_key_value_heads" if ".self_attn.k_proj." in name else None


def is_shifted_norm(architecture: str, name: str) -> bool:
    """Whether the file holds 1 + w, where Hugging Face holds w (the norms of Gemma)."""
    return architecture.startswith("gemma") and name.endswith("norm.weight")
