"""Weights of a GGUF file under Hugging Face names and in Hugging Face layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import dequantize
from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf_config import hf_config
from phloem.runtime.loading.gguf_file import Bytes, GGUFFile, TensorInfo, read_gguf
from phloem.runtime.loading.gguf_names import (
    IN_CONFIG,
    hf_name,
    interleaved_heads,
    is_shifted_norm,
)

FLOATS = {Kind.F32: torch.float32, Kind.F16: torch.float16, Kind.BF16: torch.bfloat16}
QUANTIZED = {
    Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K,
}  # fmt: skip
CHUNK = 1 << 18
"""Elements dequantised at a time: bounds the temporaries, and is large enough for numpy."""


class GGUFSource:
    """WeightSource over one GGUF file, which stays mapped; ``get`` makes a new tensor each time.

    Raises (when built):
        ModelError: see ``read_gguf`` and ``hf_config``; or a tensor has an unknown name or type.
    """

    def __init__(self, path: Path) -> None:
        self._file = read_gguf(path)
        self.config: dict[str, Any] = hf_config(self._file)
        self._architecture: str = self._file.metadata["general.architecture"]
        self._stored = _stored_names(self._file, self._architecture)

    def names(self) -> set[str]:
        return set(self._stored)

    def get(self, name: str) -> Tensor:
        """The tensor in the type it is stored in; float32 for quantised types."""
        kind, rows = self.raw(name)
        if kind in FLOATS:
            tensor = torch.from_numpy(rows.copy()).view(FLOATS[kind])
        else:
            tensor = torch.from_numpy(_dequantized(rows, kind))
        return tensor - 1 if is_shifted_norm(self._architecture, name) else tensor

    def blocks(self, name: str) -> Blocks | None:
        """See WeightSource.blocks; a view of the file, or a copy where rows change places."""
        kind, rows = self.raw(name)
        if kind not in QUANTIZED or rows.ndim != 2:
            return None
        return Blocks(kind.name, rows, self._file.tensors[self._stored[name]].shape[-1])

    def raw(self, name: str) -> tuple[Kind, Bytes]:
        """Storage type and stored bytes, uint8 [rows..., bytes of a row], rows in HF's order.

        The norms of Gemma hold 1 + w here.
        """
        if name not in self._stored:
            raise ModelError(f"{self._file.path} has no tensor {name}")
        stored = self._stored[name]
        info, rows = self._file.tensors[stored], self._file.rows(stored)
        heads_key = interleaved_heads(self._architecture, name)
        if heads_key is not None:
            rows = self._halves(info, rows, self.config[heads_key])
        return info.kind, rows

    def _halves(self, info: TensorInfo, rows: Bytes, heads: int) -> Bytes:
        """Undo the interleaving of each head's two halves, in a matrix or a bias."""
        if info.shape[0] % (2 * heads):
            raise ModelError(
                f"{self._file.path}: {info.name} has {info.shape[0]} rows for {heads} heads"
            )
        pairs = rows.reshape(heads, info.shape[0] // heads // 2, 2, -1)
        return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _stored_names(file: GGUFFile, architecture: str) -> dict[str, str]:
    """HF name -> GGUF name of each tensor."""
    stored: dict[str, str] = {}
    for info in file.tensors.values():
        if info.name in IN_CONFIG:
            continue
        name = hf_name(architecture, info.name)
        if name is None:
            raise ModelError(
                f"{file.path}: tensor {info.name} is not part of a {architecture} model"
            )
        if info.kind not in FLOATS and info.kind not in QUANTIZED:
            known = ", ".join(kind.name for kind in (*FLOATS, *sorted(QUANTIZED)))
            raise ModelError(
                f"{file.path}: tensor {info.name} has type {info.kind.name}; supported: {known}"
            )
        stored[name] = info.name
    return stored


def _dequantized(rows: Bytes, kind: Kind) -> np.ndarray[Any, np.dtype[np.float32]]:
    """uint8 [..., bytes of a row] -> float32 [..., elements of a row].

    Blocks do not know of rows, so a chunk is unpacked as one long row: the package's function
    works in groups of 16 rows, which costs twice the time on narrow matrices.
    """
    flat = rows.reshape(-1, rows.shape[-1])
    columns = dequantize(flat[:1], kind).shape[-1]
    values = np.empty((len(flat), columns), np.float32)
    step = max(1, CHUNK // columns)
    for start in range(0, len(flat), step):
        chunk = flat[start : start + step]
        values[start : start + step] = dequantize(chunk.reshape(1, -1), kind).reshape(-1, columns)
    return values.reshape(*rows.shape[:-1], columns)
