"""Buffers that outlive a call."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Scratch:
    """Named buffers that are reused and only grow.

    Allocating megabytes anew on every call costs more in page faults than the arithmetic on them.
    A buffer is valid until its name is taken again; one thread at a time.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def take(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """An uninitialised tensor over the buffer ``name``."""
        size = math.prod(shape)
        key = (name, dtype, device)
        buffer = self._buffers.get(key)
        if buffer is None or len(buffer) < size:
            # An inference tensor could not be written outside of inference mode later on.
            with torch.inference_mode(False):
                buffer = self._buffers[key] = torch.empty(size, dtype=dtype, device=device)
        return buffer[:size].view(*shape)
