"""What the APIs' shapes of log-probabilities have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer

LOWEST = -9999.0
"""Stands for minus infinity, which JSON cannot hold."""


def finite(logprob: float) -> float:
    return max(logprob, LOWEST)


def shown_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """A token's bytes; those of its name if it is a special one."""
    return tokenizer.piece(token, skip_special_tokens=False)
