"""The tensors behind the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phloem.radix_cache.page_pool import check_geometry

PageIds = Sequence[int] | NDArray[np.integer[Any]]


class KVPool:
    """Keys and values of all layers, one allocation each.

    Page ``num_pages`` is scratch: a place for writes that nobody reads (padding rows), outside
    the accounts of PagePool.

    The memory is neither cleared nor touched when it is made, so that a pool larger than what
    gets used costs nothing. A slot that was never written may hold NaN: attention must not read
    beyond a request's ``kv_len``, not even with weight zero, since 0 * NaN is NaN.

    Attributes:
        k, v: [num_layers, num_pages + 1, page_size, num_kv_heads, head_dim].
        bytes_per_page: K and V of one page in all layers.
    """

    def __init__(
        self,
        num_layers: int,
        num_pages: int,
        page_size: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> None:
        """Reserve the memory.

        Raises:
            ValueError: a size is out of range.
            MemoryError: the device does not have so much memory.
        """
        check_geometry(num_pages, page_size)
        sizes = {"num_layers": num_layers, "num_kv_heads": num_kv_heads, "head_dim": head_dim}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name}: {size} is not positive")
        self.num_pages = num_pages
        self.page_size = page_size
        self.device = torch.device(device)
        self.bytes_per_page = 2 * num_layers * page_size * num_kv_heads * head_dim * dtype.itemsize
        shape = (num_layers, num_pages + 1, page_size, num_kv_heads, head_dim)
        try:
            self.k = torch.empty(shape, dtype=dtype, device=self.device)
            self.v = torch.empty(shape, dtype=dtype, device=self.device)
        except RuntimeError as error:
            wanted = self.bytes_per_page * (num_pages + 1)
            raise MemoryError(
                f"num_pages: {num_pages} pages need {wanted} bytes, more than {self.device} has"
            ) from error

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """K and V of one layer, each [num_pages + 1, page_size, num_kv_heads, head_dim]."""
        return self.k[index], self.v[index]

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
        for side in (self.k, self.v):
            side[:, target] = side[:, source]

    def _page_ids(self, name: str, pages: PageIds) -> Tensor:
        ids = np.asarray(pages, dtype=np.int64)
        if ids.size and not (ids.min() >= 0 and ids.max() < self.num_pages):
            raise ValueError(f"{name}: ids must be in 0 .. {self.num_pages - 1}")
        return torch.from_numpy(ids).to(self.device)
