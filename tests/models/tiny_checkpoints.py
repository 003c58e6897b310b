"""Tiny random checkpoints of every family, and transformers' own model beside each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from phloem.kernels.blocks import Blocks
from phloem.runtime.errors import ModelError

SIZES = {
    "vocab_size": 97,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1000.0,
    "short_factor": [1.0, 1.1],
    "long_factor": [1.5, 3.0],
}
PHI3 = {"model_type": "phi3", "hidden_size": 48, "partial_rotary_factor": 0.5}
GEMMA = {"query_pre_attn_scalar": 10, "sliding_window": 6}

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "llama-biased": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "llama-tied": {"model_type": "llama", "tie_word_embeddings": True, "head_dim": 6},
    "llama-mha": {"model_type": "llama", "num_attention_heads": 3, "num_key_value_heads": 3},
    "llama3": {"model_type": "llama", "rope_parameters": LLAMA3},
    "llama-linear": {
        "model_type": "llama",
        "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 100.0},
    },
    "llama-yarn": {"model_type": "llama", "rope_parameters": YARN},
    "llama-yarn-tuned": {
        "model_type": "llama",
        "rope_parameters": {**YARN, "beta_fast": 4.0, "beta_slow": 0.5, "attention_factor": 1.3},
    },
    "llama-yarn-mscale": {
        "model_type": "llama",
        "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.1, "truncate": False},
    },
    "mistral": {"model_type": "mistral", "sliding_window": 7},
    "mistral-full": {"model_type": "mistral", "sliding_window": None},
    "qwen2": {"model_type": "qwen2"},
    "qwen2-sliding": {
        "model_type": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 5,
        "max_window_layers": 1,
    },
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True},
    "qwen3-biased": {"model_type": "qwen3", "attention_bias": True},
    "phi3": {**PHI3, "sliding_window": 9},
    "phi3-long": {
        **PHI3,
        "sliding_window": None,
        "original_max_position_embeddings": 16,
        "rope_parameters": {**LONGROPE, "original_max_position_embeddings": 16},
    },
    "phi3-short": {
        **PHI3,
        "sliding_window": None,
        "original_max_position_embeddings": 64,
        "rope_parameters": {
            **LONGROPE,
            "original_max_position_embeddings": 64,
            "attention_factor": 1.2,
        },
    },
    "gemma2": {"model_type": "gemma2", "tie_word_embeddings": True, **GEMMA},
    "gemma2-hard-caps": {
        "model_type": "gemma2",
        "attn_logit_softcapping": 1.5,
        "final_logit_softcapping": 2.0,
        **GEMMA,
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "tie_word_embeddings": True,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        },
        **GEMMA,
    },
}
SHORTEST = {"phi3-long": 20}
"""transformers takes longrope's long factors only for sequences beyond the original context."""


class StateSource:
    """A WeightSource over tensors in memory."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.config = config
        self.tensors = tensors

    def names(self) -> set[str]:
        return set(self.tensors)

    def get(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ModelError(f"there is no tensor {name}")
        return self.tensors[name]

    def blocks(self, name: str) -> Blocks | None:
        return None


@dataclass(frozen=True)
class Checkpoint:
    """transformers' model, and the same as a source of ours."""

    module: Any
    source: StateSource

    @torch.inference_mode()
    def logits(self, tokens: list[int]) -> Tensor:
        """float32 [n, V] of the whole sequence at once."""
        out: Tensor = self.module(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
        return out


@cache
def family(name: str) -> Checkpoint:
    """The checkpoint of one of FAMILIES."""
    return random_checkpoint({**SIZES, **FAMILIES[name]})


def random_checkpoint(fields: dict[str, Any]) -> Checkpoint:
    """Random weights for a config; norms and biases too are random, as they start as 1 and 0."""
    fields = dict(fields)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    torch.manual_seed(0)
    module = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for value in module.parameters():
            if value.ndim == 1:
                value += 0.3 * torch.randn_like(value)
    tied = set(module.all_tied_weights_keys or ())
    tensors = {n: t for n, t in module.state_dict().items() if n not in tied}
    described = {**config.to_dict(), "architectures": [type(module).__name__]}
    return Checkpoint(module, StateSource(described, tensors))
