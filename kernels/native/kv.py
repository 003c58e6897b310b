"""Pages of keys and values in the layout that the kernels read: see ``Pages`` in src/kernels.h."""

from __future__ import annotations

import torch

from phloem.kernels.native.library import Library, Pages
from phloem.kernels.ops import KVLayer, PageSide

KINDS = {torch.bfloat16: 0, torch.float32: 1, torch.int8: 2}
"""By the type of keys and values. int8 has a scale for each token and head."""
PAGE_SIZES = 1, 8, 16, 32, 64
"""Chunks of keys are whole pages, and small pages parts of a block of 16 keys."""
TILE = 16
MOST_HEAD = 256
MOST_QUERIES = 64
"""Dimensions of a head, and query heads that share a KV head, at most."""


def page_sides(
    library: Library, page_size: int, heads: int, size: int, dtype: torch.dtype
) -> tuple[PageSide, ...]:
    """K and V of a page, and their scales, in one tensor.

    The shape [page_size, heads, n] says how large a page is, not where in it a number lies.

    Raises:
        ValueError: there are no kernels for this type, or for heads of this size.
    """
    if dtype not in KINDS:
        names = ", ".join(str(kind).removeprefix("torch.") for kind in KINDS)
        raise ValueError(f"kv_dtype: native ops have no {dtype}, only {names}")
    if page_size not in PAGE_SIZES:
        raise ValueError(
            f"page_size: native ops have pages of {PAGE_SIZES} tokens, not {page_size}"
        )
    if size > MOST_HEAD:
        raise ValueError(
            f"ops: native ops have heads of {MOST_HEAD} dimensions at most, not {size}"
        )
    content = library.page_bytes(KINDS[dtype], page_size, heads, size)
    return (PageSide((page_size, heads, content // (page_size * heads * dtype.itemsize)), dtype),)


def kv_pages(kv: KVLayer, size: int) -> Pages:
    """The library's view of one layer, for heads of ``size`` dimensions."""
    (pages,) = kv
    padded = -(-size // TILE) * TILE
    return Pages(pages.data_ptr(), KINDS[pages.dtype], pages.shape[1], pages.shape[2], size, padded)
