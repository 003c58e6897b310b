"""The tensors behind the pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phloem.radix_cache import host_memory
from phloem.radix_cache.page_pool import check_geometry

PageIds = Sequence[int] | NDArray[np.integer[Any]]


class KVPool:
    """Keys and values of all layers, one allocation each.

    Page ``num_pages`` is scratch: a place for writes that nobody reads (padding rows), outside
    the accounts of PagePool.

    The memory is neither cleared nor touched when it is made, so that a pool larger than what
    gets used costs nothing. A slot that was never written may hold NaN: attention must not read
    beyond a request's ``kv_len``, not even with weight zero, since 0 * NaN is NaN.

    What a page is made of is the business of those who read it; here it is one or several
    tensors, the sides: K and V, say.

    Attributes:
        sides: each [num_layers, num_pages + 1, *shape of a page].
        bytes_per_page: one page in all layers.
    """

    def __init__(
        self,
        num_layers: int,
        num_pages: int,
        page_size: int,
        sides: Sequence[tuple[tuple[int, ...], torch.dtype]],
        device: torch.device | str = "cpu",
    ) -> None:
        """Reserve the memory.

        Raises:
            ValueError: a size is out of range.
            MemoryError: the device does not have so much memory.
        """
        check_geometry(num_pages, page_size)
        if num_layers < 1:
            raise ValueError(f"num_layers: {num_layers} is not positive")
        for shape, _ in sides:
            if not shape or min(shape) < 1:
                raise ValueError(f"sides: {shape} is no shape of a page")
        self.num_pages = num_pages
        self.page_size = page_size
        self.device = torch.device(device)
        self.bytes_per_page = num_layers * sum(math.prod(s) * dtype.itemsize for s, dtype in sides)
        pages = (num_layers, num_pages + 1)
        try:
            self.sides = [reserve((*pages, *shape), dtype, self.device) for shape, dtype in sides]
        except (RuntimeError, MemoryError) as error:
            wanted = self.bytes_per_page * (num_pages + 1)
            raise MemoryError(
                f"num_pages: {num_pages} pages need {wanted} bytes, more than {self.device} has"
            ) from error

    def layer(self, index: int) -> tuple[Tensor, ...]:
        """One layer's sides, each [num_pages + 1, *shape of a page]."""
        return tuple(side[index] for side in self.sides)

    def copy_pages(self, src: PageIds, dst: PageIds) -> None:
        """Copy page ``src[i]`` to page ``dst[i]`` in all layers.

        Every source is read before any target is written, so a page may be both.

        Raises:
            ValueError: the lengths differ, a target is named twice, or a page does not exist.
        """
        source, target = self._page_ids("src", src), self._page_ids("dst", dst)
        if len(source) != len(target):
            raise ValueError(f"dst: {len(target)} targets for {len(source)} sources")
        if len(set(target.tolist())) != len(target):
            raise ValueError("dst: a page is named twice")
        for side in self.sides:
            side[:, target] = side[:, source]

    def _page_ids(self, name: str, pages: PageIds) -> Tensor:
        ids = np.asarray(pages, dtype=np.int64)
        if ids.size and not (ids.min() >= 0 and ids.max() < self.num_pages):
            raise ValueError(f"{name}: ids must be in 0 .. {self.num_pages - 1}")
        return torch.from_numpy(ids).to(self.device)


def reserve(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """An uninitialised tensor; on the host, in memory made for it."""
    if device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return host_memory.take(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)
