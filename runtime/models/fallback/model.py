"""A model of transformers that serves as ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer, Ops
from phloem.runtime.models.config import KVGeometry
from phloem.runtime.models.fallback.attention import PagedAnswer, answered_by


@dataclass(frozen=True, slots=True)
class Shape:
    """See ``base.ModelShape``."""

    architecture: str
    vocab_size: int
    context_length: int


class TransformersModel:
    """See ``base.Model``. Takes ``module``, a causal LM, apart: it cannot be used otherwise then.

    The decoder runs alone. How hidden states become logits (scaling, soft-caps) is known to the
    causal LM around it only, so that runs too, with a decoder that recalls given hidden states.
    """

    def __init__(self, module: Any, ops: Ops, shape: Shape, geometry: KVGeometry) -> None:
        self.config = shape
        self.kv_geometry = geometry
        self.dtype: torch.dtype = module.dtype
        self.device: torch.device = module.device
        self._ops = ops
        self._decoder = module.base_model
        self._recall = Recall()
        setattr(module, module.base_model_prefix, self._recall)
        self._head = module

    def logits(
        self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer], rows: Tensor
    ) -> Tensor:
        """See Model.logits."""
        with answered_by(PagedAnswer(self._ops, batch, kv)):
            hidden = hidden_states(self._decoder, token_ids, batch.positions)
        self._recall.hidden = hidden[rows][None]
        logits: Tensor = self._head(input_ids=rows[None], use_cache=False).logits[0]
        return logits.float()


class Recall(torch.nn.Module):
    """Stands where a decoder was and returns what it was told."""

    hidden: Tensor

    @property
    def decoder(self) -> Recall:
        """OPT's causal LM calls its model's inner decoder."""
        return self

    def forward(self, *_: Any, **__: Any) -> Recalled:
        return Recalled(self.hidden)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A decoder's output that has nothing but hidden states; every model has its own type."""

    last_hidden_state: Tensor

    def __getattr__(self, name: str) -> None:
        return None

    def __getitem__(self, index: int) -> Tensor | None:
        return self.last_hidden_state if index == 0 else None


def hidden_states(decoder: Any, token_ids: Tensor, positions: Tensor) -> Tensor:
    """[T, M], the whole ragged batch as one row."""
    out = decoder(input_ids=token_ids[None], position_ids=positions[None], use_cache=False)
    hidden: Tensor = out.last_hidden_state[0]
    return hidden
