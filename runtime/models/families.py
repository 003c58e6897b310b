"""How each family's Hugging Face config maps to a ModelConfig: one short function a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from phloem.runtime.errors import ModelError
from phloem.runtime.models.config import Activation, ModelConfig
from phloem.runtime.models.rope_config import rope_config

Config = Mapping[str, Any]

ACTIVATIONS: dict[str, Activation] = {"silu": "silu", "gelu_pytorch_tanh": "gelu"}
UNSUPPORTED = ("quantization_config", "num_local_experts", "num_experts")


def parse_config(hf: Config) -> ModelConfig:
    """The ModelConfig of a family that has a definition here.

    Raises:
        ModelError: the config asks for something that the definition does not do, or lacks a
            field; the message names it.
    """
    for name in UNSUPPORTED:
        if hf.get(name):
            raise ModelError(f"the config's {name} is not supported: {hf[name]}")
    if not is_known(hf):
        known = ", ".join(FAMILIES)
        raise ModelError(f"the config's model_type {hf.get('model_type')!r} is not one of {known}")
    try:
        return FAMILIES[hf["model_type"]](hf)
    except KeyError as error:
        raise ModelError(f"the config lacks {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"the config holds a value of a wrong type: {error}") from error


def is_known(hf: Config) -> bool:
    """Whether the family has a definition here."""
    return hf.get("model_type") in FAMILIES


def common(hf: Config, slides: Callable[[int], bool] = lambda layer: False) -> ModelConfig:
    """What the families share. ``slides(i)``: whether layer i has a window where the config does
    not list the layers' types."""
    hidden, heads = size(hf, "hidden_size"), size(hf, "num_attention_heads")
    kv_heads = optional_size(hf, "num_key_value_heads") or heads
    if heads % kv_heads:
        raise ModelError(
            f"the config's num_attention_heads {heads} is no multiple of its "
            f"num_key_value_heads {kv_heads}"
        )
    head_dim = optional_size(hf, "head_dim") or hidden // heads
    return ModelConfig(
        architecture=architecture(hf),
        vocab_size=size(hf, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=size(hf, "intermediate_size"),
        num_layers=size(hf, "num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        norm_eps=hf["rms_norm_eps"],
        context_length=size(hf, "max_position_embeddings"),
        tie_embeddings=bool(hf.get("tie_word_embeddings", False)),
        rope=rope_config(hf, head_dim),
        attention_scale=head_dim**-0.5,
        windows=layer_windows(hf, slides),
        activation=activation(hf),
    )


def size(hf: Config, name: str) -> int:
    value = hf[name]
    if not isinstance(value, int) or value < 1:
        raise ModelError(f"the config's {name} is {value!r}, not a positive number")
    return value


def optional_size(hf: Config, name: str) -> int | None:
    return None if hf.get(name) is None else size(hf, name)


def architecture(hf: Config) -> str:
    return str((hf.get("architectures") or [hf["model_type"]])[0])


def activation(hf: Config) -> Activation:
    name = hf.get("hidden_activation") or hf.get("hidden_act") or "silu"
    if name not in ACTIVATIONS:
        raise ModelError(f"the config's activation {name!r} is not one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def layer_windows(hf: Config, slides: Callable[[int], bool]) -> tuple[int | None, ...]:
    window, layers = optional_size(hf, "sliding_window"), size(hf, "num_hidden_layers")
    kinds = hf.get("layer_types") or [
        "sliding_attention" if slides(i) else "full_attention" for i in range(layers)
    ]
    if len(kinds) != layers:
        raise ModelError(f"the config's layer_types holds {len(kinds)} of {layers} layers")
    unknown = set(kinds) - {"sliding_attention", "full_attention"}
    if unknown:
        raise ModelError(f"the config's layer_types holds {', '.join(sorted(unknown))}")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def llama(hf: Config) -> ModelConfig:
    bias = bool(hf.get("attention_bias", False))
    return replace(
        common(hf), qkv_bias=bias, output_bias=bias, mlp_bias=bool(hf.get("mlp_bias", False))
    )


def mistral(hf: Config) -> ModelConfig:
    return common(hf, slides=lambda i: True)


def qwen2(hf: Config) -> ModelConfig:
    first = hf.get("max_window_layers", 0)
    used = bool(hf.get("use_sliding_window", False))
    return replace(common(hf, slides=lambda i: used and i >= first), qkv_bias=True)


def qwen3(hf: Config) -> ModelConfig:
    bias = bool(hf.get("attention_bias", False))
    return replace(qwen2(hf), qkv_bias=bias, output_bias=bias, qk_norm=True)


def phi3(hf: Config) -> ModelConfig:
    return replace(common(hf, slides=lambda i: True), fused_weights=True)


def gemma(hf: Config, slides: Callable[[int], bool]) -> ModelConfig:
    base = common({"tie_word_embeddings": True, **hf}, slides)
    bias = bool(hf.get("attention_bias", False))
    return replace(
        base,
        attention_scale=hf.get("query_pre_attn_scalar", base.head_dim) ** -0.5,
        embedding_scale=base.hidden_size**0.5,
        qkv_bias=bias,
        output_bias=bias,
        sandwich_norms=True,
        unit_offset_norms=True,
    )


def gemma2(hf: Config) -> ModelConfig:
    return replace(
        gemma(hf, slides=lambda i: i % 2 == 0),
        attention_softcap=hf.get("attn_logit_softcapping", 50.0),
        logit_softcap=hf.get("final_logit_softcapping", 30.0),
    )


def gemma3(hf: Config) -> ModelConfig:
    if hf.get("use_bidirectional_attention"):
        raise ModelError("the config's use_bidirectional_attention is not supported")
    pattern = hf.get("sliding_window_pattern") or hf.get("_sliding_window_pattern") or 6
    base = gemma({"rope_theta": 1e6, **hf}, slides=lambda i: (i + 1) % pattern != 0)
    return replace(
        base,
        local_rope=rope_config(hf, base.head_dim, layers="sliding_attention"),
        attention_softcap=hf.get("attn_logit_softcapping"),
        logit_softcap=hf.get("final_logit_softcapping"),
        qk_norm=True,
    )


FAMILIES: dict[str, Callable[[Config], ModelConfig]] = {
    "llama": llama,
    "mistral": mistral,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "phi3": phi3,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
}
