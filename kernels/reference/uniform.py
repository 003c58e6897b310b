"""Random numbers that are a function of their index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GAMMA = np.uint64(0x9E3779B97F4A7C15)


def uniform(seed: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.float64]:
    """In [0, 1): number ``position`` of the SplitMix64 stream that ``seed`` selects.

    SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
    mixes a counter, so any position is reached at once. The seed is mixed too: the streams of
    neighbouring seeds would else be shifts of each other.
    """
    start = mix(seed.view(np.uint64) + GAMMA)
    bits = mix(start + (position.view(np.uint64) + np.uint64(1)) * GAMMA) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of SplitMix64: a bijection in which every bit depends on every bit."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
