"""From a checkpoint to transformers' model."""

from __future__ import annotations

from typing import Any

import torch

from phloem.kernels.ops import Ops
from phloem.runtime.errors import ModelError
from phloem.runtime.loading.source import WeightSource
from phloem.runtime.models.fallback.attention import ATTENTION, attend
from phloem.runtime.models.fallback.model import Shape, TransformersModel
from phloem.runtime.models.fallback.proof import measure, own_logits, probe, prove

MOVING_ROPE = {"dynamic", "longrope"}
"""Rotations that transformers computes from the longest sequence of a batch: keys in the cache
would have another one than those added later."""


def load_transformers_model(
    source: WeightSource, ops: Ops, dtype: torch.dtype, device: torch.device
) -> TransformersModel:
    """Build the model, load the weights, and prove that paging changes nothing.

    Raises:
        ModelError: transformers does not know the model, tensors are missing or unknown, or the
            model is not a causal decoder whose only state is its keys and values.
    """
    config = parse(source)
    module = load_module(config, source, dtype).to(device)
    shape = describe(module)
    try:
        check_rope(module.config.get_text_config())
        geometry = measure(module)
        ids = probe(shape.vocab_size, device)
        expected = own_logits(module, ids)
        model = TransformersModel(module, ops, shape, geometry)
        prove(model, ids, expected)
    except Exception as error:  # the model's own code may fail in any way when it is run so
        raise ModelError(f"{shape.architecture} cannot run on paged attention: {error}") from error
    return model


def parse(source: WeightSource) -> Any:
    """The config as transformers' object."""
    from transformers import AutoConfig

    fields = dict(source.config)
    kind = fields.pop("model_type", None)
    if fields.get("quantization_config"):
        raise ModelError("the config's quantization_config is not supported")
    try:
        return AutoConfig.for_model(kind, **fields)
    except Exception as error:  # transformers checks configs with errors of many types
        raise ModelError(f"transformers cannot read a config of type {kind!r}: {error}") from None


def load_module(config: Any, source: WeightSource, dtype: torch.dtype) -> Any:
    """The causal LM with its weights; transformers maps the checkpoint's names and layouts."""
    from transformers import AttentionInterface, AutoModelForCausalLM

    AttentionInterface.register(ATTENTION, attend)
    try:
        with torch.device("meta"):
            kind = type(AutoModelForCausalLM.from_config(config))
    except (ValueError, ImportError) as error:
        name = config.model_type
        raise ModelError(f"transformers has no causal LM of type {name!r}: {error}") from None
    module, report = kind.from_pretrained(
        None,
        config=config,
        state_dict={name: source.get(name) for name in source.names()},
        dtype=dtype,
        attn_implementation=ATTENTION,
        ignore_mismatched_sizes=True,  # they are reported, and refused below
        output_loading_info=True,
    )
    check_report(report)
    return module.eval()


def check_report(report: dict[str, Any]) -> None:
    """Raise for tensors that are missing, of another shape, or without a place."""
    for kind in ("missing_keys", "mismatched_keys", "unexpected_keys", "error_msgs"):
        if report[kind]:
            some = ", ".join(sorted(map(str, report[kind]))[:5])
            raise ModelError(f"the checkpoint does not fit the model: {kind} are {some}")


def describe(module: Any) -> Shape:
    architecture, config = type(module).__name__, module.config.get_text_config()
    context_length = getattr(config, "max_position_embeddings", None)
    if context_length is None:
        raise ModelError(f"the config of {architecture} lacks max_position_embeddings")
    return Shape(architecture, config.vocab_size, context_length)


def check_rope(config: Any) -> None:
    fields = getattr(config, "rope_parameters", None) or {}
    parts = [fields, *(part for part in fields.values() if isinstance(part, dict))]
    moving = MOVING_ROPE & {part.get("rope_type") for part in parts}
    if moving:
        raise ModelError(f"rope type {moving.pop()!r} depends on the other requests in a batch")
