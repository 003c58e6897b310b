"""Whether a model's only state is what passes through our attention: measured and proved.

transformers has hundreds of models, among them some with recurrent state, attention sinks, other
masks or values of another size. None is taken on trust: at load a few random tokens run through
the model in several spans and must give the logits of transformers' own attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.runtime.errors import ModelError
from phloem.runtime.models.config import KVGeometry
from phloem.runtime.models.fallback.attention import ATTENTION, Call, answered_by
from phloem.runtime.models.fallback.model import TransformersModel, hidden_states

PROBE_TOKENS = 24
SPANS = ((PROBE_TOKENS,), (9, 1, 1, PROBE_TOKENS - 11))
TOLERANCE = {torch.float32: 2e-3}
"""Of the largest logit; 0.1 for other dtypes."""
PAGE_SIZE = 8


def measure(module: Any) -> KVGeometry:
    """What the layers keep per token.

    Raises:
        ModelError: not every layer attends through the interface, they differ in shape, or their
            windows are not those of the config.
    """
    calls: dict[int, Call] = {}

    def record(call: Call) -> Tensor:
        calls[call.layer] = call
        return torch.zeros_like(call.q)

    ids = torch.arange(2, device=module.device)
    with torch.inference_mode(), answered_by(record):
        hidden_states(module.base_model, ids, ids)
    config = module.config.get_text_config()
    layers = config.num_hidden_layers
    if calls.keys() != set(range(layers)):
        raise ModelError(f"{len(calls)} of its {layers} layers attend through the interface")
    shapes = {call.k.shape[1:] for call in calls.values()}
    if len(shapes) > 1:
        raise ModelError("its layers differ in heads or head size")
    check_windows(config, [calls[layer].window for layer in range(layers)])
    return KVGeometry(layers, *shapes.pop())


def check_windows(config: Any, actual: Sequence[int | None]) -> None:
    """The probe is shorter than most windows, so a mask that we are not told of would pass it."""
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        kinds = ["sliding_attention" if window else "full_attention"] * len(actual)
    for layer, (kind, given) in enumerate(zip(kinds, actual, strict=True)):
        if kind not in ("full_attention", "sliding_attention"):
            raise ModelError(f"its layer {layer} is of type {kind}")
        if given != (window if kind == "sliding_attention" else None):
            raise ModelError(f"its layer {layer} ({kind}) attends with a window of {given}")


def probe(vocab_size: int, device: torch.device) -> Tensor:
    """Random token ids, the same every time."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, vocab_size, (PROBE_TOKENS,), generator=generator).to(device)


@torch.inference_mode()
def own_logits(module: Any, ids: Tensor) -> Tensor:
    """float32 [n, V] from transformers' eager attention."""
    module.set_attn_implementation("eager")
    try:
        logits: Tensor = module(input_ids=ids[None], use_cache=False).logits[0].float()
        return logits
    finally:
        module.set_attn_implementation(ATTENTION)


@torch.inference_mode()
def prove(model: TransformersModel, ids: Tensor, expected: Tensor) -> None:
    """Compare with the model's own attention, whole and in spans.

    Raises:
        ModelError: the logits differ by more than rounding.
    """
    tolerance = TOLERANCE.get(model.dtype, 0.1)
    for spans in SPANS:
        difference = span_logits(model, ids, spans) - expected
        error = (difference.abs().max() / expected.abs().max()).item()
        if not error < tolerance:  # nan is no proof either
            raise ModelError(
                f"its logits change by {error:.3g} of their size when computed in spans {spans}"
            )


def span_logits(model: TransformersModel, ids: Tensor, spans: Sequence[int]) -> Tensor:
    """float32 [n, V], computed span by span over pages."""
    geometry, pages = model.kv_geometry, -(-len(ids) // PAGE_SIZE)
    shape = (2, pages, PAGE_SIZE, geometry.num_kv_heads, geometry.head_dim)
    pool = [ids.new_zeros(shape, dtype=model.dtype) for _ in range(geometry.num_layers)]
    kv = [(layer[0], layer[1]) for layer in pool]
    logits, start = [], 0
    for count in spans:
        positions = torch.arange(start, start + count, device=ids.device)
        batch = RaggedBatch(
            positions=positions,
            slots=positions,
            query_start=torch.tensor([0, count], dtype=torch.int32, device=ids.device),
            kv_len=torch.tensor([start + count], dtype=torch.int32, device=ids.device),
            page_table=torch.arange(pages, dtype=torch.int32, device=ids.device)[None],
            page_size=PAGE_SIZE,
        )
        rows = torch.arange(count, device=ids.device)
        logits.append(model.logits(ids[start : start + count], batch, kv, rows))
        start += count
    return torch.cat(logits)
