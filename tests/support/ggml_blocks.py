"""The block formats of ggml, one value at a time, as their definition states them."""

from __future__ import annotations

import struct
from collections.abc import Callable

from gguf import GGMLQuantizationType as Kind


def half(block: bytes, at: int) -> float:
    return float(struct.unpack_from("<e", block, at)[0])


def nibble(packed: bytes, i: int, width: int = 16) -> int:
    """Value i of a run that holds its first half in low nibbles, its second half in high ones."""
    return packed[i] & 15 if i < width else packed[i - width] >> 4


def q8_0(b: bytes) -> list[float]:
    return [half(b, 0) * q for q in struct.unpack_from("<32b", b, 2)]


def q4_0(b: bytes) -> list[float]:
    return [half(b, 0) * (nibble(b[2:], i) - 8) for i in range(32)]


def q4_1(b: bytes) -> list[float]:
    return [half(b, 0) * nibble(b[4:], i) + half(b, 2) for i in range(32)]


def fifth(packed: bytes, i: int) -> int:
    return (struct.unpack("<I", packed)[0] >> i & 1) << 4


def q5_0(b: bytes) -> list[float]:
    return [half(b, 0) * ((nibble(b[6:], i) | fifth(b[2:6], i)) - 16) for i in range(32)]


def q5_1(b: bytes) -> list[float]:
    return [half(b, 0) * (nibble(b[8:], i) | fifth(b[4:8], i)) + half(b, 2) for i in range(32)]


def scale_and_min(packed: bytes, j: int) -> tuple[int, int]:
    """The six-bit scale and minimum of sub-block j, packed in 12 bytes."""
    if j < 4:
        return packed[j] & 63, packed[j + 4] & 63
    low = packed[j + 4]
    return low & 15 | packed[j - 4] >> 6 << 4, low >> 4 | packed[j] >> 6 << 4


def q4_k(b: bytes) -> list[float]:
    values = []
    for i in range(256):
        scale, least = scale_and_min(b[4:16], i // 32)
        q = nibble(b[16 + i // 64 * 32 :], i % 64, width=32)
        values.append(half(b, 0) * scale * q - half(b, 2) * least)
    return values


def q5_k(b: bytes) -> list[float]:
    values = []
    for i in range(256):
        scale, least = scale_and_min(b[4:16], i // 32)
        q = nibble(b[48 + i // 64 * 32 :], i % 64, width=32)
        q |= (b[16 + i % 32] >> i // 32 & 1) << 4
        values.append(half(b, 0) * scale * q - half(b, 2) * least)
    return values


def q6_k(b: bytes) -> list[float]:
    scales = struct.unpack_from("<16b", b, 192)
    values = []
    for i in range(256):
        run, within = divmod(i, 128)
        low = nibble(b[run * 64 + within % 64 :], 0 if within < 64 else 1, width=1)
        high = b[128 + run * 32 + within % 32] >> within // 32 * 2 & 3
        values.append(half(b, 208) * scales[i // 16] * ((low | high << 4) - 32))
    return values


UNPACK: dict[Kind, Callable[[bytes], list[float]]] = {
    Kind.Q8_0: q8_0,
    Kind.Q4_0: q4_0,
    Kind.Q4_1: q4_1,
    Kind.Q5_0: q5_0,
    Kind.Q5_1: q5_1,
    Kind.Q4_K: q4_k,
    Kind.Q5_K: q5_k,
    Kind.Q6_K: q6_k,
}
HALVES = {
    Kind.Q8_0: (0,),
    Kind.Q4_0: (0,),
    Kind.Q4_1: (0, 2),
    Kind.Q5_0: (0,),
    Kind.Q5_1: (0, 2),
    Kind.Q4_K: (0, 2),
    Kind.Q5_K: (0, 2),
    Kind.Q6_K: (208,),
}
"""Where the half-precision factors lie in a block."""
