"""A config's rotary embedding, in transformers' current form or in the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phloem.runtime.errors import ModelError
from phloem.runtime.models.config import RopeConfig

Fields = Mapping[str, Any]

COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
ORIGINAL = "original_max_position_embeddings"
PARAMETERS = {
    "default": set[str](),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", ORIGINAL},
    "yarn": {
        "factor",
        "beta_fast",
        "beta_slow",
        "truncate",
        "attention_factor",
        "mscale",
        "mscale_all_dim",
        ORIGINAL,
    },
    "longrope": {"short_factor", "long_factor", "factor", "attention_factor", ORIGINAL},
}
"""What each kind may say beside COMMON."""
DEFAULT_THETA = 10000.0


def rope_config(hf: Fields, head_dim: int, layers: str = "full_attention") -> RopeConfig:
    """The rope of one kind of layer.

    Raises:
        ModelError: the kind of scaling or a parameter of it is not supported, or one is missing.
    """
    fields = parameters(hf, layers)
    kind: Any = fields.get("rope_type") or fields.get("type") or "default"
    if kind not in PARAMETERS:
        raise ModelError(f"the config's rope type {kind!r} is not one of {', '.join(PARAMETERS)}")
    unknown = {name for name, value in fields.items() if value is not None}
    unknown -= COMMON | PARAMETERS[kind]
    if unknown:
        raise ModelError(f"the config's {kind} rope has unknown parameters {sorted(unknown)}")
    partial = fields.get("partial_rotary_factor") or hf.get("partial_rotary_factor") or 1.0
    rope = RopeConfig(theta=float(fields["rope_theta"]), rotated=int(head_dim * partial), kind=kind)
    if rope.rotated % 2:
        raise ModelError(f"the config's rope rotates {rope.rotated} dimensions, which is odd")
    if not 0 < rope.rotated <= head_dim:
        raise ModelError(
            f"the config's rope rotates {rope.rotated} dimensions of heads that have {head_dim}"
        )
    try:
        return replace(rope, **scaling(hf, fields, rope))
    except KeyError as error:
        raise ModelError(f"the config's {kind} rope lacks {error}") from None


def parameters(hf: Fields, layers: str) -> dict[str, Any]:
    """``rope_parameters`` of the layers, or the same put together from the older fields."""
    current = hf.get("rope_parameters")
    if current is not None:
        fields = dict(current.get(layers, current))
    elif layers == "sliding_attention":
        fields = {"rope_theta": hf.get("rope_local_base_freq")}
    else:
        fields = {"rope_theta": hf.get("rope_theta"), **(hf.get("rope_scaling") or {})}
    return {**fields, "rope_theta": fields.get("rope_theta") or DEFAULT_THETA}


def scaling(hf: Fields, fields: Fields, rope: RopeConfig) -> dict[str, Any]:
    """The fields of RopeConfig that say how frequencies are scaled."""
    if rope.kind == "default":
        return {}
    if rope.kind == "linear":
        return {"factor": float(fields["factor"])}
    longest = hf["max_position_embeddings"]
    original = int(fields.get(ORIGINAL) or hf.get(ORIGINAL) or longest)
    factor = float(fields.get("factor") or longest / original)
    return {"factor": factor, "original_context": original} | SCALING[rope.kind](fields, rope)


def llama3(fields: Fields, rope: RopeConfig) -> dict[str, Any]:
    return {name: float(fields[name]) for name in ("low_freq_factor", "high_freq_factor")}


def yarn(fields: Fields, rope: RopeConfig) -> dict[str, Any]:
    return {
        "beta_fast": fields.get("beta_fast") or 32.0,
        "beta_slow": fields.get("beta_slow") or 1.0,
        "truncate": fields.get("truncate", True),
        "attention_factor": fields.get("attention_factor"),
        "attention_scales": (fields.get("mscale") or 0.0, fields.get("mscale_all_dim") or 0.0),
    }


def longrope(fields: Fields, rope: RopeConfig) -> dict[str, Any]:
    for name in ("short_factor", "long_factor"):
        if len(fields[name]) != rope.rotated // 2:
            raise ModelError(
                f"the config's {name} holds {len(fields[name])} numbers, not {rope.rotated // 2}"
            )
    return {
        "short_factors": tuple(fields["short_factor"]),
        "long_factors": tuple(fields["long_factor"]),
        "attention_factor": fields.get("attention_factor"),
    }


SCALING = {"llama3": llama3, "yarn": yarn, "longrope": longrope}
