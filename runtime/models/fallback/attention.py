"""The function that transformers' models call for attention, and who answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer, Ops
from phloem.runtime.errors import ModelError

ATTENTION = "phloem_paged"
"""Name of our function among transformers' attention implementations."""


@dataclass(frozen=True, slots=True)
class Call:
    """One layer's attention: q [T, H, D]; k and v [T, K, D], rotated if the model rotates."""

    layer: int
    q: Tensor
    k: Tensor
    v: Tensor
    scale: float
    window: int | None
    softcap: float | None


Answer = Callable[[Call], Tensor]
_answer: ContextVar[Answer] = ContextVar("answer")


@contextmanager
def answered_by(answer: Answer) -> Iterator[None]:
    """Let ``answer`` compute the attention of the forward passes inside."""
    token = _answer.set(answer)
    try:
        yield
    finally:
        _answer.reset(token)


def attend(
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
    if not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        sizes = [x.shape[-1] for x in (query, key, value)]
        raise ModelError(f"the heads of its queries, keys and values differ in size: {sizes}")
    q, k, v = (x[0].transpose(0, 1).contiguous() for x in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    call = Call(int(module.layer_idx), q, k, v, scale, sliding_window, softcap)
    return _answer.get()(call)[None], None


@dataclass(frozen=True, slots=True)
class PagedAnswer:
    """Writes keys and values to their pages, then attends over the pages."""

    ops: Ops
    batch: RaggedBatch
    kv: Sequence[KVLayer]

    def __call__(self, call: Call) -> Tensor:
        layer = self.kv[call.layer]
        for pages, new in zip(layer, (call.k, call.v), strict=True):
            pages.view(-1, *pages.shape[2:]).index_copy_(0, self.batch.slots, new.to(pages.dtype))
        return self.ops.attention(
            call.q, layer, self.batch, scale=call.scale, window=call.window, softcap=call.softcap
        )
