"""Memory on the host for large tensors that are read in pieces."""

from __future__ import annotations

import mmap

import torch
from torch import Tensor

HUGE_PAGE = 2 << 20
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""Shared memory, which is the default, has no huge pages."""


def take(nbytes: int) -> Tensor:
    """uint8 [nbytes] of memory that is not touched yet, in huge pages where the system has them.

    Pieces of some kilobytes all over a large pool cost more in looking up addresses than in
    reading, if pages are small: attention over scattered pages takes half the time so.

    Raises:
        MemoryError: there is not so much memory.
    """
    try:
        memory = mmap.mmap(-1, nbytes + HUGE_PAGE, **PRIVATE)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"{nbytes} bytes cannot be reserved: {error}") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(memory, dtype=torch.uint8)
    start = -whole.data_ptr() % HUGE_PAGE
    return whole[start : start + nbytes]
