"""Tensors of a checkpoint by name, with their shapes checked and none forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from phloem.kernels.blocks import StoredWeight
from phloem.kernels.ops import Embedding, Linear, Ops
from phloem.runtime.errors import ModelError
from phloem.runtime.loading.source import WeightSource

DERIVED = ".rotary_emb.inv_freq"
"""Ending of tensors that old checkpoints hold although they follow from the config."""


class Weights:
    """Reads tensors one by one, in the dtype and on the device where they are used."""

    def __init__(
        self, source: WeightSource, ops: Ops, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.ops = ops
        self.dtype = dtype
        self.device = device
        self._source = source
        self._unread = {name for name in source.names() if not name.endswith(DERIVED)}

    def tensor(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """One tensor, in the model's dtype unless another is given.

        Raises:
            ModelError: it is missing, or has another shape.
        """
        value = self._source.get(name)
        self._take(name, value.shape, shape)
        return value.to(device=self.device, dtype=dtype or self.dtype)

    def weight(self, name: str, out: int, inner: int) -> StoredWeight:
        """A matrix: in the blocks it is stored in, if the ops take those, else as ``tensor``."""
        blocks = self._source.blocks(name)
        if blocks is None or blocks.kind not in self.ops.block_kinds:
            return self.tensor(name, out, inner)
        self._take(name, blocks.shape, (out, inner))
        return blocks

    def linear(self, names: list[str], outs: list[int], inner: int, *, bias: bool) -> Linear:
        """Linear maps of the same input, stacked into one."""
        parts = [
            self.weight(f"{name}.weight", out, inner) for name, out in zip(names, outs, strict=True)
        ]
        biases = [self.tensor(f"{n}.bias", o) for n, o in zip(names, outs, strict=True) if bias]
        return self.ops.prepare_linear(parts, torch.cat(biases) if biases else None)

    def embedding(self, name: str, rows: int, inner: int) -> Embedding:
        """A table of rows."""
        return self.ops.prepare_embedding(self.weight(f"{name}.weight", rows, inner))

    def _take(self, name: str, found: Sequence[int], shape: tuple[int, ...]) -> None:
        if tuple(found) != shape:
            raise ModelError(f"tensor {name} has shape {list(found)}, not {list(shape)}")
        self._unread.discard(name)

    def ignore(self, name: str) -> None:
        """Say that a tensor is not needed."""
        self._unread.discard(name)

    def finish(self) -> None:
        """Check that every tensor of the checkpoint was read.

        Raises:
            ModelError: one was not, so the definition does not fit the checkpoint.
        """
        if self._unread:
            some = ", ".join(sorted(self._unread)[:5])
            raise ModelError(f"{len(self._unread)} tensors have no place in the model: {some}")
