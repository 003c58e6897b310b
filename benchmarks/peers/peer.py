"""What an adapter is given and what it gives: standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MAX_SEQUENCES = 32
"""Most prompts in one batch."""

MAX_LENGTH = 1152
"""Most tokens in one sequence, prompt and output together."""


@dataclass(frozen=True)
class Settings:
    """The model in two forms, and how to run it.

    ``folder`` is the same model in Hugging Face's layout, float32, for engines that start from
    that. What an engine converts the model to is kept in ``cache``. ``variant`` is what follows
    the colon in a contestant's name.
    """

    gguf: str
    folder: str
    cache: str
    threads: int
    variant: str = ""


@dataclass(frozen=True)
class Output:
    """A prompt's continuation: token ids, and seconds from the call to when each was there."""

    tokens: list[int]
    times: list[float]


class Peer(Protocol):
    """A loaded engine."""

    description: str
    """Package, version, and the weights' format."""

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        """Continue all prompts together by ``length`` tokens each: greedy, end tokens ignored.

        The engine may keep what it computed for later calls. Prompts are of equal length.
        """


def native_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16."""
    flags = Path("/proc/cpuinfo").read_text().split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def shared_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens two sequences have in common."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
