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

    def logits(
        self, token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer], rows: Tensor
    ) -> Tensor:
        """Compute tokens int64 [T], write their K and V, and score what follows some of them.

        ``rows`` int64 [L] are rows of the batch; returns float32 [L, V].
        """
