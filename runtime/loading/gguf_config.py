"""GGUF metadata to the content of a Hugging Face ``config.json`` (in transformers 5 form).

Rope scaling is in ``rope_parameters``, per layer type for Gemma 3. The frequency factors of
Llama 3 files (``rope_freqs``) become ``rope_type: longrope`` with the same factors for short
and long contexts and an attention factor of 1: the same frequencies, in terms that a config has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gguf.constants import GGMLQuantizationType

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf_file import Default, GGUFFile

Config = dict[str, Any]

GEMMA2_27B_LAYERS = 46
GEMMA3_27B_LAYERS = 62
"""The 27B models alone scale queries by hidden_size / heads; files do not say so."""


class Metadata:
    """The metadata of one file, read under its architecture's prefix."""

    def __init__(self, file: GGUFFile) -> None:
        self.file = file
        self.architecture = file.get("general.architecture", str, "")

    def count(self, key: str, default: int | None = None) -> int:
        """A positive number; where the file has one per layer, they must be equal."""
        value = self.file.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise self._lacks(key)
        values = set(value) if isinstance(value, list) else {value}
        number = values.pop() if len(values) == 1 else None
        if type(number) is not int or number < 1:
            raise ModelError(
                f"{self.file.path}: {self.architecture}.{key} must be one positive number for all "
                f"layers, not {value}"
            )
        return number

    def number(self, key: str, default: Default) -> float | Default:
        return self.file.get(f"{self.architecture}.{key}", float, default)

    def text(self, key: str, default: str) -> str:
        return self.file.get(f"{self.architecture}.{key}", str, default)

    def epsilon(self) -> float:
        value = self.number("attention.layer_norm_rms_epsilon", None)
        if value is None:
            raise self._lacks("attention.layer_norm_rms_epsilon")
        return value

    def window(self) -> int | None:
        """The sliding window in tokens; files write 0 for none."""
        return self.file.get(f"{self.architecture}.attention.sliding_window", int, None) or None

    def has(self, tensor: str) -> bool:
        return tensor in self.file.tensors

    def floats(self, tensor: str, count: int) -> list[float]:
        """The values of an F32 tensor of shape [count]."""
        info = self.file.tensors.get(tensor)
        if info is None or info.shape != (count,) or info.kind != GGMLQuantizationType.F32:
            raise ModelError(f"{self.file.path} needs {tensor} with {count} values of type F32")
        values: list[float] = self.file.rows(tensor).view(np.float32).tolist()
        return values

    def _lacks(self, key: str) -> ModelError:
        return ModelError(f"{self.file.path} lacks the metadata {self.architecture}.{key}")


def hf_config(file: GGUFFile) -> Config:
    """The config of ``file``.

    Raises:
        ModelError: the architecture is not supported, or metadata that it needs is missing.
    """
    metadata = Metadata(file)
    build = ARCHITECTURES.get(metadata.architecture)
    if build is None:
        raise ModelError(
            f"{file.path} has architecture {metadata.architecture!r}; "
            f"supported: {', '.join(ARCHITECTURES)}"
        )
    if file.get(f"{metadata.architecture}.expert_count", int, 0):
        raise ModelError(f"{file.path} is a mixture of experts, which is not supported")
    if file.get("split.count", int, 1) > 1:
        raise ModelError(f"{file.path} is one part of a split model; merge it with gguf-split")
    last = metadata.count("block_count") - 1
    for tensor in ("token_embd.weight", f"blk.{last}.attn_norm.weight"):
        if not metadata.has(tensor):
            raise ModelError(f"{file.path} has no tensor {tensor}")
    return _common(metadata) | build(metadata)


def _common(m: Metadata) -> Config:
    heads = m.count("attention.head_count")
    config: Config = {
        "vocab_size": m.file.tensors["token_embd.weight"].shape[0],
        "hidden_size": m.count("embedding_length"),
        "intermediate_size": m.count("feed_forward_length"),
        "num_hidden_layers": m.count("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": m.count("attention.head_count_kv", heads),
        "head_dim": _head_dim(m),
        "max_position_embeddings": m.count("context_length"),
        "rms_norm_eps": m.epsilon(),
        "tie_word_embeddings": not m.has("output.weight"),
        "rope_parameters": _rope(m),
    }
    for key, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        config[f"{key}_token_id"] = m.file.get(f"tokenizer.ggml.{name}_token_id", int, None)
    return config


def _head_dim(m: Metadata) -> int:
    derived = m.count("embedding_length") // m.count("attention.head_count")
    return m.count("attention.key_length", derived)


def _rope(m: Metadata) -> Config:
    """``rope_parameters`` of the layers with full attention."""
    rope: Config = {"rope_theta": m.number("rope.freq_base", 10000.0)}
    head_dim = _head_dim(m)
    rotated = m.count("rope.dimension_count", head_dim)
    if rotated != head_dim:
        rope["partial_rotary_factor"] = rotated / head_dim
    return rope | _rope_scaling(m, rotated // 2)


def _rope_scaling(m: Metadata, frequencies: int) -> Config:
    if m.has("rope_freqs.weight"):
        factors = m.floats("rope_freqs.weight", frequencies)
        return _longrope(m, factors, factors, attention_factor=1.0)
    if m.has("rope_factors_long.weight"):
        short = m.floats("rope_factors_short.weight", frequencies)
        long = m.floats("rope_factors_long.weight", frequencies)
        return _longrope(m, short, long, m.number("rope.scaling.attn_factor", None))
    kind = m.text("rope.scaling.type", "linear")
    factor = m.number("rope.scaling.factor", m.number("rope.scale_linear", 1.0))
    if kind == "none" or (kind == "linear" and factor in (0.0, 1.0)):
        return {"rope_type": "default"}
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        return _yarn(m, factor)
    raise ModelError(f"{m.file.path} has rope scaling {kind!r}, which this reader does not know")


def _original_context(m: Metadata) -> int:
    return m.count("rope.scaling.original_context_length", m.count("context_length"))


def _longrope(
    m: Metadata, short: list[float], long: list[float], attention_factor: float | None
) -> Config:
    rope: Config = {
        "rope_type": "longrope",
        "short_factor": short,
        "long_factor": long,
        "original_max_position_embeddings": _original_context(m),
    }
    return rope if attention_factor is None else rope | {"attention_factor": attention_factor}


def _yarn(m: Metadata, factor: float) -> Config:
    rope: Config = {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": _original_context(m),
    }
    for name, key in (("attention_factor", "attn_factor"), ("beta_fast", "beta_fast"),
                      ("beta_slow", "beta_slow")):  # fmt: skip
        value = m.number(f"rope.scaling.yarn_{key}", None)
        if value is not None:
            rope[name] = value
    return rope


def _llama(m: Metadata) -> Config:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "attention_bias": m.has("blk.0.attn_q.bias"),
        "mlp_bias": m.has("blk.0.ffn_up.bias"),
    }


def _qwen2(m: Metadata) -> Config:
    return {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_act": "silu",
        "use_sliding_window": False,
    }


def _qwen3(m: Metadata) -> Config:
    return {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "hidden_act": "silu",
        "attention_bias": m.has("blk.0.attn_q.bias"),
        "use_sliding_window": False,
    }


def _phi3(m: Metadata) -> Config:
    return {
        "model_type": "phi3",
        "architectures": ["Phi3ForCausalLM"],
        "hidden_act": "silu",
        "sliding_window": m.window(),
        "original_max_position_embeddings": _original_context(m),
    }


def _gemma2(m: Metadata) -> Config:
    return _gemma(m, period=2, big=GEMMA2_27B_LAYERS) | {
        "model_type": "gemma2",
        "architectures": ["Gemma2ForCausalLM"],
        "sliding_window": m.window() or 4096,
        "attn_logit_softcapping": m.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": m.number("final_logit_softcapping", 30.0),
    }


def _gemma3(m: Metadata) -> Config:
    local = m.number("rope.freq_base_swa", 10000.0)
    full = _rope(m) | {"rope_theta": m.number("rope.freq_base", 1_000_000.0)}
    window = m.window()
    return _gemma(m, period=6 if window else 1, big=GEMMA3_27B_LAYERS) | {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "sliding_window": window,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": m.number("final_logit_softcapping", None),
        "rope_parameters": {
            "full_attention": full,
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        },
    }


def _gemma(m: Metadata, period: int, big: int) -> Config:
    """What Gemma 2 and 3 share: every ``period``-th layer attends in full."""
    layers, heads = m.count("block_count"), m.count("attention.head_count")
    scalar = m.count("embedding_length") // heads if layers == big else _head_dim(m)
    return {
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "query_pre_attn_scalar": scalar,
        "layer_types": [
            "full_attention" if full else "sliding_attention" for full in _full(m, layers, period)
        ],
    }


def _full(m: Metadata, layers: int, period: int) -> list[bool]:
    """Which layers attend in full; a file may state the period, or each layer."""
    key = f"{m.architecture}.attention.sliding_window_pattern"
    if isinstance(m.file.metadata.get(key), list):
        sliding = m.file.get_list(key, bool) or []
        if len(sliding) != layers:
            raise ModelError(f"{m.file.path}: {key} has {len(sliding)} entries, not {layers}")
        return [not layer for layer in sliding]
    period = m.count("attention.sliding_window_pattern", period)
    return [(layer + 1) % period == 0 for layer in range(layers)]


ARCHITECTURES: dict[str, Callable[[Metadata], Config]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "phi3": _phi3,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
}
