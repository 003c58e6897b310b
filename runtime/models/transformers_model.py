"""Any causal decoder that transformers knows, with our paged attention inside.

The model's own code runs over the ragged batch as one row of tokens; its attention function is
ours, which writes the pages and reads them. Whether that is all the state the model has is not
taken on trust: at load a few random tokens run through it in several spans and must give the
logits of transformers' own attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer, Ops
from phloem.runtime.errors import ModelError
from phloem.runtime.loading.source import WeightSource
from phloem.runtime.models.config import KVGeometry

ATTENTION = "phloem_paged"
PROBE_TOKENS = 24
PROBE_TOLERANCE = 2e-3
PAGE_SIZE = 8


@dataclass(slots=True)
class Pass:
    """What the attention function works on in one forward pass; ``kv`` None records shapes."""

    ops: Ops
    batch: RaggedBatch | None
    kv: Sequence[KVLayer] | None
    shapes: dict[int, tuple[int, int]] = field(default_factory=dict)


_current: ContextVar[Pass] = ContextVar("pass")


def paged_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface: q [1, H, T, D], k and v [1, K, T, D] -> [1, T, H, D]."""
    now = _current.get()
    layer = int(module.layer_idx)
    if key.shape != value.shape:
        raise ModelError("its keys and values differ in size")
    if now.kv is None or now.batch is None:
        now.shapes[layer] = (key.shape[1], key.shape[3])
        return torch.zeros_like(query).transpose(1, 2), None
    q, k, v = (x[0].transpose(0, 1).contiguous() for x in (query, key, value))
    for pages, new in zip(now.kv[layer], (k, v), strict=True):
        pages.view(-1, *pages.shape[2:])[now.batch.slots] = new.to(pages.dtype)
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    out = now.ops.attention(
        q, now.kv[layer], now.batch, scale=scale, window=sliding_window, softcap=softcap
    )
    return out[None], None


@dataclass(frozen=True, slots=True)
class Shape:
    """See ``base.ModelShape``."""

    architecture: str
    vocab_size: int
    context_length: int


class TransformersModel:
    """See ``base.Model``."""

    def __init__(self, module: Any, ops: Ops, shape: Shape, geometry: KVGeometry) -> None:
        self.module = module
        self.ops = ops
        self.config = shape
        self.kv_geometry = geometry
        self.dtype: torch.dtype = module.dtype
        self.device: torch.device = module.device

    def forward(self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        """See Model.forward."""
        token = _current.set(Pass(self.ops, batch, kv))
        try:
            return hidden_states(self.module, token_ids, batch.positions)
        finally:
            _current.reset(token)

    def logits(self, hidden: Tensor, rows: Tensor) -> Tensor:
        """See Model.logits; the head's own scaling and soft-cap come from the model's code."""
        return head_logits(self.module, hidden[rows]).float()


def hidden_states(module: Any, token_ids: Tensor, positions: Tensor) -> Tensor:
    out = module.base_model(
        input_ids=token_ids[None], position_ids=positions[None], use_cache=False
    )
    hidden: Tensor = out.last_hidden_state[0]
    return hidden


def head_logits(module: Any, hidden: Tensor) -> Tensor:
    head: Tensor = module.get_output_embeddings()(hidden)
    return head


def load_transformers_model(
    source: WeightSource, ops: Ops, dtype: torch.dtype, device: torch.device
) -> TransformersModel:
    """Build the model from its config, load the weights, and prove that paging changes nothing.

    Raises:
        ModelError: transformers does not know the model, tensors are missing or unknown, or the
            model is not a causal decoder whose only state is its keys and values.
    """
    module = build(source, dtype).to(device)
    load_tensors(module, source)
    config = module.config.get_text_config()
    shape = Shape(
        architecture=type(module).__name__,
        vocab_size=config.vocab_size,
        context_length=getattr(config, "max_position_embeddings", None) or 2048,
    )
    try:
        geometry = measure(module, ops)
        model = TransformersModel(module, ops, shape, geometry)
        prove(model)
    except ModelError as error:
        raise ModelError(f"{shape.architecture} cannot run on paged attention: {error}") from None
    return model


def build(source: WeightSource, dtype: torch.dtype) -> Any:
    from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

    AttentionInterface.register(ATTENTION, paged_attention)
    fields = dict(source.config)
    kind = fields.pop("model_type", None)
    if fields.get("quantization_config"):
        raise ModelError("the config's quantization_config is not supported")
    try:
        config = AutoConfig.for_model(kind, **fields)
        return AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=ATTENTION
        ).eval()
    except (ValueError, KeyError, ImportError) as error:
        raise ModelError(f"transformers has no causal model of type {kind!r}: {error}") from None


def load_tensors(module: Any, source: WeightSource) -> None:
    """Copy every tensor of the checkpoint to its place."""
    own = module.state_dict()
    tied = set(module.all_tied_weights_keys or ())
    missing = own.keys() - source.names() - tied
    unknown = source.names() - own.keys()
    for what, names in (("misses", missing), ("has unknown", unknown)):
        if names:
            raise ModelError(f"the checkpoint {what} tensors: {', '.join(sorted(names)[:5])}")
    with torch.no_grad():
        for name in own.keys() & source.names():
            value = source.get(name)
            if value.shape != own[name].shape:
                raise ModelError(
                    f"tensor {name} has shape {list(value.shape)}, not {list(own[name].shape)}"
                )
            own[name].copy_(value)


def measure(module: Any, ops: Ops) -> KVGeometry:
    """Which layers attend, with how many heads of what size."""
    ids = torch.zeros(2, dtype=torch.int64, device=module.device)
    now = Pass(ops, None, None)
    token = _current.set(now)
    try:
        with torch.inference_mode():
            hidden_states(module, ids, torch.arange(2, device=module.device))
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise ModelError(str(error)) from None
    finally:
        _current.reset(token)
    layers = module.config.get_text_config().num_hidden_layers
    if set(now.shapes) != set(range(layers)):
        raise ModelError(f"{len(now.shapes)} of its {layers} layers attend through the interface")
    if len(set(now.shapes.values())) != 1:
        raise ModelError("its layers differ in heads or head size")
    return KVGeometry(layers, *now.shapes[0])


@torch.inference_mode()
def prove(model: TransformersModel) -> None:
    """Compare with the model's own attention on random tokens, whole and in spans."""
    generator = torch.Generator().manual_seed(0)
    size = model.config.vocab_size
    ids = torch.randint(0, size, (PROBE_TOKENS,), generator=generator).to(model.device)
    expected = own_logits(model.module, ids)
    tolerance = PROBE_TOLERANCE if model.dtype == torch.float32 else 0.1
    scale = expected.abs().max().clamp(min=1e-3)
    for spans in ((PROBE_TOKENS,), (9, 1, 1, PROBE_TOKENS - 11)):
        error = ((span_logits(model, ids, spans) - expected).abs().max() / scale).item()
        if not error < tolerance:
            raise ModelError(
                f"its logits change by {error:.3g} of their size when computed in spans {spans}"
            )


def own_logits(module: Any, ids: Tensor) -> Tensor:
    """float32 [n, V] from transformers' eager attention."""
    module.set_attn_implementation("eager")
    try:
        logits: Tensor = module(input_ids=ids[None], use_cache=False).logits[0].float()
        return logits
    finally:
        module.set_attn_implementation(ATTENTION)


def span_logits(model: TransformersModel, ids: Tensor, spans: Sequence[int]) -> Tensor:
    """float32 [n, V], computed span by span over pages."""
    geometry, pages = model.kv_geometry, -(-len(ids) // PAGE_SIZE)
    shape = (pages, PAGE_SIZE, geometry.num_kv_heads, geometry.head_dim)
    kv = [
        (ids.new_zeros(shape, dtype=model.dtype), ids.new_zeros(shape, dtype=model.dtype))
        for _ in range(geometry.num_layers)
    ]
    table = torch.arange(pages, dtype=torch.int32, device=ids.device)[None]
    logits, start = [], 0
    for count in spans:
        positions = torch.arange(start, start + count, device=ids.device)
        batch = RaggedBatch(
            positions=positions,
            slots=positions,
            query_start=torch.tensor([0, count], dtype=torch.int32, device=ids.device),
            kv_len=torch.tensor([start + count], dtype=torch.int32, device=ids.device),
            page_table=table,
            page_size=PAGE_SIZE,
        )
        hidden = model.forward(ids[start : start + count], batch, kv)
        logits.append(model.logits(hidden, torch.arange(count, device=ids.device)))
        start += count
    return torch.cat(logits)
