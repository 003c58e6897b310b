"""A config's rotary embedding, in transformers' current form or in the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phloem.runtime.errors import ModelError
from phloem.runtime.models.config import RopeConfig
from phloem.runtime.models.rope import FREQUENCIES

LOCAL_THETA = 10000.0


def rope_config(hf: Mapping[str, Any], head_dim: int, layers: str = "full_attention") -> RopeConfig:
    """The rope of one kind of layer.

    Raises:
        ModelError: the kind of scaling is not supported, or lacks a parameter.
    """
    fields = parameters(hf, layers)
    kind = fields.get("rope_type") or fields.get("type") or "default"
    if kind not in FREQUENCIES:
        raise ModelError(
            f"the config's rope scaling {kind!r} is not one of {', '.join(FREQUENCIES)}"
        )
    partial = fields.get("partial_rotary_factor", hf.get("partial_rotary_factor", 1.0))
    original = original_context(hf, fields)
    try:
        return RopeConfig(
            theta=fields["rope_theta"],
            rotated=int(head_dim * partial),
            kind=kind,
            factor=scaling_factor(hf, fields, kind, original),
            original_context=original,
            low_freq_factor=fields["low_freq_factor"] if kind == "llama3" else 1.0,
            high_freq_factor=fields["high_freq_factor"] if kind == "llama3" else 4.0,
            beta_fast=fields.get("beta_fast") or 32.0,
            beta_slow=fields.get("beta_slow") or 1.0,
            attention_factor=fields.get("attention_factor"),
            short_factors=tuple(fields["short_factor"]) if kind == "longrope" else (),
            long_factors=tuple(fields["long_factor"]) if kind == "longrope" else (),
        )
    except KeyError as error:
        raise ModelError(f"the config's rope parameters lack {error}") from None


def parameters(hf: Mapping[str, Any], layers: str) -> dict[str, Any]:
    """``rope_parameters`` of the layers, or the same put together from the older fields."""
    current = hf.get("rope_parameters")
    if current is not None:
        return dict(current.get(layers, current))
    if layers == "sliding_attention":
        return {"rope_theta": hf.get("rope_local_base_freq", LOCAL_THETA)}
    return {"rope_theta": hf.get("rope_theta", 10000.0), **(hf.get("rope_scaling") or {})}


def original_context(hf: Mapping[str, Any], fields: Mapping[str, Any]) -> int:
    name = "original_max_position_embeddings"
    return int(fields.get(name) or hf.get(name) or hf["max_position_embeddings"])


def scaling_factor(
    hf: Mapping[str, Any], fields: Mapping[str, Any], kind: str, original: int
) -> float:
    if kind == "longrope":
        return float(fields.get("factor") or hf["max_position_embeddings"] / original)
    return 1.0 if kind == "default" else float(fields["factor"])
