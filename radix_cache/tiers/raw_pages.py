"""The bytes of pages, taken from a pool's tensors and put back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phloem.radix_cache.kv_pool import KVPool

Payload = NDArray[np.uint8]
"""uint8 [bytes per page]: side by side, each with all of its layers."""


class RawPages:
    """A KVPool, page by page as bytes; what they mean is not looked at.

    On an asynchronous device both directions are in the order of its stream: a step that is
    launched after ``write`` reads what was written.
    """

    def __init__(self, kv: KVPool) -> None:
        # Each uint8 [layers, pages, bytes of a page in one layer], a view.
        self._sides = [side.view(torch.uint8).flatten(2) for side in kv.sides]
        self.bytes_per_page = kv.bytes_per_page

    def read(self, page: int) -> Payload:
        """A copy of one page."""
        payload = np.empty(self.bytes_per_page, dtype=np.uint8)
        for part, content in self._parts(payload, page):
            part.copy_(content)
        return payload

    def write(self, page: int, payload: Payload) -> None:
        """Overwrite one page."""
        for part, content in self._parts(payload, page):
            content.copy_(part)

    def _parts(self, payload: Payload, page: int) -> Iterator[tuple[Tensor, Tensor]]:
        """For each side, its part of the payload and of the pool, both [layers, bytes]."""
        at = 0
        for side in self._sides:
            content = side[:, page]
            part = payload[at : at + content.numel()]
            yield torch.from_numpy(part).view(content.shape), content
            at += content.numel()
