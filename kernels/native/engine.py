"""Handles of the library's objects, freed when nothing refers to them any more."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phloem.kernels.blocks import StoredWeight
from phloem.kernels.native.library import Library, kernels_name, load_library

STORED = {
    "F32": 0, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8,
    "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "BF16": 30, "W8": 1000,
}  # fmt: skip
"""Numbers of the types that can be packed: GGUF's, and one for W8."""
BLOCK_KINDS = frozenset(STORED) - {"F32", "BF16"}


class NativeEngine:
    """Kernels for one instruction set, and the threads that run them."""

    def __init__(self, threads: int, kernels: str = "auto") -> None:
        """Start the threads.

        Raises:
            ValueError: the library is not there, or the processor lacks the instruction set.
            RuntimeError: the system does not give so many threads.
        """
        library, name = load_library(), kernels_name(kernels)
        if library is None or name is None:
            raise ValueError(f"ops: there are no native kernels {kernels!r} for this processor")
        self.library: Library = library
        self.kernels = name
        self.threads = threads
        handle = self.check(library.engine_new(name.encode(), threads), None)
        self.handle = own(self, handle, library.engine_free)

    def read_bandwidth(self) -> float:
        """Bytes a second that the threads read from memory; takes some tenths of a second."""
        return float(self.library.read_bandwidth(self.handle))

    def int8_peak(self) -> float:
        """Multiply-adds of bytes a second that the threads could do at most."""
        return float(self.library.int8_peak(self.handle))

    def check(self, result: Any, failure: Any) -> Any:
        """Raise what the library says if ``result`` is ``failure``."""
        if result == failure:
            raise RuntimeError(self.library.error().decode())
        return result


class Matrix:
    """A weight [rows, inputs] packed into tiles."""

    def __init__(self, engine: NativeEngine, parts: Sequence[StoredWeight]) -> None:
        """Stack ``parts``, which are all of one type, and pack them."""
        self._library = library = engine.library
        self.kind = stored_kind(parts[0])
        self.rows, self.inputs = sum(part.shape[0] for part in parts), int(parts[0].shape[1])
        handle = library.matrix_new(engine.handle, STORED[self.kind], self.rows, self.inputs)
        self.handle = own(self, engine.check(handle, None), library.matrix_free)
        row = 0
        for part in parts:
            data = row_bytes(part)
            library.matrix_pack(
                engine.handle, self.handle, STORED[self.kind], data.ctypes.data,
                data.strides[0], len(data), row,
            )  # fmt: skip
            row += len(data)

    @property
    def nbytes(self) -> int:
        return int(self._library.matrix_bytes(self.handle))

    @property
    def is_quantized(self) -> bool:
        return self.kind in BLOCK_KINDS


def stored_kind(weight: StoredWeight) -> str:
    """The type's name in STORED."""
    if not isinstance(weight, Tensor):
        return weight.kind
    return "BF16" if weight.dtype == torch.bfloat16 else "F32"


def row_bytes(weight: StoredWeight) -> np.ndarray[Any, Any]:
    """The stored rows, uint8 [N, bytes] or a type of the same size, contiguous within a row."""
    if not isinstance(weight, Tensor):
        return np.ascontiguousarray(weight.data)
    dense = weight if weight.dtype == torch.bfloat16 else weight.float()
    return dense.contiguous().view(torch.uint8).numpy()


def own(owner: object, handle: Any, free: Any) -> Any:
    """``handle``, to be freed with its owner.

    Not at the end of the process: a thread may still be computing with it then.
    """
    weakref.finalize(owner, free, handle).atexit = False
    return handle
