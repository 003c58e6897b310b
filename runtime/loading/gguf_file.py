"""Read the header of a GGUF v3 file and hand out views of its tensor data.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The ``gguf`` package's reader
makes one numpy view per array element (3.5 s for a 49k vocabulary, and no end on some truncated
files), so the header is parsed here: every read is checked against the file's end.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from phloem.runtime.errors import ModelError

MAGIC = b"GGUF"
VERSION = 3
MAX_DIMENSIONS = 4
STRING, ARRAY = 8, 9
SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?",
    10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
"""GGUF value type -> numpy type, for the types of fixed size."""
TENSOR_TYPES = {int(kind): kind for kind in GGML_QUANT_SIZES}

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

Value = TypeVar("Value")
Default = TypeVar("Default")
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where one tensor lies.

    Attributes:
        shape: in torch's order, rows first.
        offset: of its first byte in the file.
        nbytes: of its data.
    """

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """A mapped GGUF file: metadata as Python values, tensors by GGUF name."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    data: Bytes

    def get(self, key: str, kind: type[Value], default: Default) -> Value | Default:
        """The metadata ``key``, or ``default`` if the file lacks it.

        Raises:
            ModelError: it is of another type.
        """
        value: Value | None = self.metadata.get(key)
        if value is None:
            return default
        self._expect(key, value, kind)
        return value

    def get_list(self, key: str, kind: type[Value]) -> list[Value] | None:
        """The metadata ``key``, an array of ``kind``; None if the file lacks it.

        Raises:
            ModelError: it is of another type.
        """
        values: list[Value] | None = self.get(key, list, None)
        for value in {type(value): value for value in values or ()}.values():
            self._expect(key, value, kind)
        return values

    def _expect(self, key: str, value: object, kind: type) -> None:
        if type(value) is not kind:
            raise ModelError(f"{self.path}: metadata {key} is {value!r:.40}, no {kind.__name__}")

    def rows(self, name: str) -> Bytes:
        """The stored bytes of a tensor, uint8 [rows..., bytes of a row]; a view of the map."""
        info = self.tensors[name]
        row = row_bytes(info.kind, info.shape[-1])
        return self.data[info.offset : info.offset + info.nbytes].reshape(*info.shape[:-1], row)


def row_bytes(kind: GGMLQuantizationType, elements: int) -> int:
    """Bytes that ``elements`` values of one row take."""
    block, size = GGML_QUANT_SIZES[kind]
    return int(elements // block * size)


def read_gguf(path: Path) -> GGUFFile:
    """Parse the header of ``path`` and map its data.

    Raises:
        ModelError: not a GGUF file, another version or byte order, cut short, or inconsistent.
    """
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    cursor = _Cursor(path, data.data)
    tensor_count, metadata_count = _read_preamble(cursor)
    metadata = _read_metadata(cursor, metadata_count)
    tensors = _read_tensor_table(cursor, tensor_count, metadata.get("general.alignment", 32))
    return GGUFFile(path, metadata, tensors, data)


class _Cursor:
    """A position in the file that never passes its end."""

    def __init__(self, path: Path, data: memoryview) -> None:
        self.path = path
        self.data = data
        self.at = 0

    def error(self, what: str) -> ModelError:
        return ModelError(f"{self.path} is not a usable GGUF file: {what}")

    def truncated(self) -> ModelError:
        return self.error(f"truncated at {len(self.data)} bytes, where its header goes on")

    def take(self, n: int) -> memoryview:
        end = self.at + n
        if end > len(self.data):
            raise self.truncated()
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def u32(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        return int(_U64.unpack(self.take(8))[0])

    def string(self) -> str:
        return self.strings(1)[0]

    def strings(self, count: int) -> list[str]:
        """``count`` strings; vocabularies have hundreds of thousands, so the loop is tight."""
        data, at, size = self.data, self.at, len(self.data)
        strings: list[str] = []
        try:
            for _ in range(count):
                start = at + 8
                at = start + _U64.unpack_from(data, at)[0]
                if at > size:
                    raise self.truncated()
                strings.append(str(data[start:at], "utf-8"))
        except struct.error as error:
            raise self.truncated() from error
        except UnicodeDecodeError as error:
            raise self.error(f"the string before byte {at} is not UTF-8") from error
        self.at = at
        return strings


def _read_preamble(cursor: _Cursor) -> tuple[int, int]:
    """Check magic and version; returns (tensor count, metadata count)."""
    if bytes(cursor.data[:4]) != MAGIC:
        raise cursor.error("it does not begin with the letters GGUF")
    cursor.take(4)
    version = cursor.u32()
    if version & 0xFFFF == 0 and version:
        raise cursor.error("it is big-endian; only little-endian files are read")
    if version != VERSION:
        raise cursor.error(f"it has GGUF version {version}; only version {VERSION} is read")
    return cursor.u64(), cursor.u64()


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.string()
        if key in metadata:
            raise cursor.error(f"metadata key {key} appears twice")
        metadata[key] = _read_value(cursor, key, cursor.u32())
    return metadata


def _read_value(cursor: _Cursor, key: str, kind: int) -> Any:
    if kind == STRING:
        return cursor.string()
    if kind == ARRAY:
        return _read_array(cursor, key)
    return _read_scalars(cursor, key, kind, 1)[0]


def _read_array(cursor: _Cursor, key: str) -> list[Any]:
    kind, count = cursor.u32(), cursor.u64()
    if kind == STRING:
        return cursor.strings(count)
    return _read_scalars(cursor, key, kind, count)


def _read_scalars(cursor: _Cursor, key: str, kind: int, count: int) -> list[Any]:
    if kind not in SCALARS:
        raise cursor.error(f"metadata key {key} has the unknown value type {kind}")
    dtype = np.dtype(SCALARS[kind])
    values: list[Any] = np.frombuffer(cursor.take(count * dtype.itemsize), dtype).tolist()
    return values


def _read_tensor_table(cursor: _Cursor, count: int, alignment: Any) -> dict[str, TensorInfo]:
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise cursor.error(f"general.alignment is {alignment!r}, not a power of two")
    infos = [_read_tensor_info(cursor) for _ in range(count)]
    start = -(-cursor.at // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, kind, relative in infos:
        if name in tensors:
            raise cursor.error(f"tensor {name} appears twice")
        nbytes = row_bytes(kind, shape[-1]) * prod(shape[:-1])
        offset = start + relative
        if offset + nbytes > len(cursor.data):
            raise cursor.error(
                f"truncated: tensor {name} ends at byte {offset + nbytes}, "
                f"the file at {len(cursor.data)}"
            )
        tensors[name] = TensorInfo(name, shape, kind, offset, nbytes)
    return tensors


def _read_tensor_info(
    cursor: _Cursor,
) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
    """(name, shape, type, offset from the start of the data)."""
    name, dimensions = cursor.string(), cursor.u32()
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise cursor.error(f"tensor {name} has {dimensions} dimensions")
    shape = tuple(cursor.u64() for _ in range(dimensions))[::-1]
    number, offset = cursor.u32(), cursor.u64()
    if number not in TENSOR_TYPES:
        raise cursor.error(f"tensor {name} has the unknown type {number}")
    kind = TENSOR_TYPES[number]
    block, _ = GGML_QUANT_SIZES[kind]
    if min(shape) < 1 or shape[-1] % block:
        raise cursor.error(f"tensor {name} has shape {list(shape)}, not whole blocks of {block}")
    return name, shape, kind, offset
