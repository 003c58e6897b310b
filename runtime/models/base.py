"""What the executor needs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import KVLayer
from phloem.runtime.models.config import KVGeometry


class ModelShape(Protocol):
    """The part of a config that does not depend on the definition."""

    @property
    def architecture(self) -> str: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def context_length(self) -> int: ...


class Model(Protocol):
    """A causal language model over a paged KV cache."""

    @property
    def config(self) -> ModelShape: ...

    @property
    def kv_geometry(self) -> KVGeometry: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    def forward(self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer]) -> Tensor:
        """int64 [T] -> final hidden states [T, M]; writes the tokens' K and V."""

    def logits(self, hidden: Tensor, rows: Tensor) -> Tensor:
        """Rows int64 [L] of ``hidden`` -> float32 [L, V]."""
