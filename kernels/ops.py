"""Every op by name: one signature, several implementations.

A model definition receives an ``Ops`` object and calls it; which implementation stands behind it
is chosen once, at load. ``reference`` (plain torch) defines what is correct. A recording
implementation can hand out symbolic buffers and leave a flat list of calls, because models never
look inside the tensors.

T: query tokens of the step, R: requests, H: query heads, K: KV heads, D: head size, V: vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.blocks import StoredWeight

KVLayer = tuple[Tensor, ...]
"""The pages of one layer, in the tensors that ``Ops.page_sides`` describes; the reference has two,
K and V, each [pages, page_size, K, D]."""


@dataclass(frozen=True, slots=True)
class PageSide:
    """One of the tensors that hold a layer's pages: [pages, *shape]."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear map y = x W^T + b; only the implementation that made it looks at ``weight``."""

    weight: Any
    bias: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """A table of rows; only the implementation that made it looks at ``weight``."""

    weight: Any


Step = Callable[[Tensor, RaggedBatch, Tensor], Tensor]
"""(token ids int64 [T], batch, rows int64 [L]) -> logits float32 [L, V], valid until the next."""
ModelStep = Callable[[Tensor, RaggedBatch, Sequence[KVLayer], Tensor], Tensor]
"""The same, over given pages."""

NO_TOKEN = -1
"""Sampled from a row of logits that gives nothing to choose from."""


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Per-row sampling parameters for L rows; all tensors have length L.

    Attributes:
        temperature: float32; 0 selects the row's argmax (the lowest id among equals).
        top_k: int64; V or more means no limit.
        top_p: float32 in (0, 1].
        min_p: float32 in [0, 1).
        seed: int64, position: int64: the row's random draw depends on (seed, position) alone,
            so a row's choice is the same alone, in any batch and after a retraction.
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    seed: Tensor
    position: Tensor


class Ops(Protocol):
    """The ops that a model and the sampler are written on."""

    name: str
    block_kinds: frozenset[str]
    """Kinds of Blocks that the ``prepare`` methods take; other weights come as tensors."""

    def prepare_linear(self, parts: Sequence[StoredWeight], bias: Tensor | None = None) -> Linear:
        """Pack the weights [N_i, M] of maps of one input, stacked to [N, M], and a bias [N]."""

    def prepare_embedding(self, weight: StoredWeight) -> Embedding:
        """Pack the rows [V, M] of an embedding."""

    def tied_linear(self, embedding: Embedding) -> Linear:
        """The map whose weight is the embedding."""

    def page_sides(
        self, page_size: int, heads: int, size: int, dtype: torch.dtype
    ) -> tuple[PageSide, ...]:
        """What a layer's pages are kept in, for ``heads`` KV heads of ``size`` dimensions.

        Raises:
            ValueError: there is no such form.
        """

    def compile(self, step: ModelStep, kv: Sequence[KVLayer]) -> Step:
        """The step over these pages as it runs best: as it is, or recorded once and replayed.

        The other ops from ``embedding`` to ``logits`` may be usable inside of ``step`` only.
        """

    def embedding(self, token_ids: Tensor, table: Embedding, scale: float = 1.0) -> Tensor:
        """int64 [T] -> [T, M]: rows of ``table``, times ``scale``."""

    def linear(self, x: Tensor, linear: Linear) -> Tensor:
        """[T, M] -> [T, N]."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Normalise the last dimension: x / sqrt(mean(x^2) + eps) * weight, in float32 inside.

        ``weight`` is float32, whatever x's dtype.
        """

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """``s = x + residual``; returns (rms_norm(s), s)."""

    def rope_and_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        rope: Tensor,
        kv: KVLayer,
        batch: RaggedBatch,
    ) -> Tensor:
        """Rotate q and k by position, write k and v into their slots; returns rotated q.

        q [T, H, D]; k, v [T, K, D]; rope float32 [positions, 2, r / 2] holds cos and sin. The
        first r dimensions of a head are rotated, dimension i together with i + r / 2 (the
        "rotate half" form of Hugging Face checkpoints).
        """

    def attention(
        self,
        q: Tensor,
        kv: KVLayer,
        batch: RaggedBatch,
        *,
        scale: float,
        window: int | None = None,
        softcap: float | None = None,
    ) -> Tensor:
        """Causal attention of each query over its request's pages, prefill and decode alike.

        q [T, H, D] -> [T, H, D]. Query head h reads KV head h // (H // K). ``window`` w: a query
        at position p sees keys at positions > p - w. ``softcap`` c: scores become
        c * tanh(score / c).
        """

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """[T, 2 I] -> [T, I]: silu(first half) * second half."""

    def gelu_mul(self, gate_up: Tensor) -> Tensor:
        """[T, 2 I] -> [T, I]: gelu (tanh form) of the first half * second half."""

    def logits(
        self, hidden: Tensor, rows: Tensor, head: Linear, softcap: float | None = None
    ) -> Tensor:
        """Rows of ``hidden`` [T, M] chosen by ``rows`` int64 [L] -> float32 [L, V]."""

    def apply_mask(self, logits: Tensor, mask: Tensor, rows: Tensor) -> None:
        """In place: logits[rows[i], v] = -inf where bit v of mask[i] is 0.

        logits float32 [L, V]; mask int32 [M, ceil(V / 32)], bit v % 32 of word v // 32;
        rows int64 [M]. Tokens that the mask is too short to have are forbidden.
        """

    def sample(self, logits: Tensor, batch: SamplingBatch) -> Tensor:
        """float32 [L, V] -> int64 [L]. Filters in the order temperature, top_k, top_p, min_p.

        A row whose largest logit is not finite, or that has a nan, gets NO_TOKEN.
        """
