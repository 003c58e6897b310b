"""How ``select`` decides between choices, given the log-probabilities of their tokens.

The three methods of SGLang, as pure functions. All scores cover the same context: the tokens
from one common boundary on (see ``backends/scoring.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True, slots=True)
class Scored:
    """One choice's tokens.

    Attributes:
        token_ids: ids from the common boundary to the end of the choice, at least one.
        logprobs: natural-log probability of each, given all text before it.
        unconditional: the same without the text before the boundary; None unless asked for.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    unconditional: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Index of the winner (the first of equals) and what led to it, for ``meta_info``."""

    index: int
    meta: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChoicesMethod:
    """A way to decide; ``unconditional`` asks for scores without context as well."""

    name: str
    decide: Callable[[Sequence[Scored]], Decision]
    unconditional: bool = False


def _by_mean(scored: Sequence[Scored]) -> Decision:
    means = [fmean(choice.logprobs) for choice in scored]
    return Decision(_argmax(means), {"normalized_prompt_logprobs": means})


def _by_gain(scored: Sequence[Scored]) -> Decision:
    gains = [
        fmean(a - b for a, b in zip(choice.logprobs, choice.unconditional or (), strict=True))
        for choice in scored
    ]
    return Decision(_argmax(gains), {"normalized_unconditional_prompt_logprobs": gains})


def _token_by_token(scored: Sequence[Scored]) -> Decision:
    """Follow the likeliest token at each position; drop the choices that do not have it.

    A choice that has ended competes with its mean log-probability. Choices are compared by token
    and not by value, since equal tokens computed in different batches may differ by rounding.
    """
    means = [fmean(choice.logprobs) for choice in scored]
    remaining = list(range(len(scored)))
    for position in range(max(len(choice.token_ids) for choice in scored)):
        remaining = _followers(scored, means, remaining, position)
    return Decision(remaining[0], {"normalized_prompt_logprobs": means})


def _followers(
    scored: Sequence[Scored], means: list[float], remaining: list[int], position: int
) -> list[int]:
    """Those of ``remaining`` that have the likeliest token at ``position``."""
    here = {
        i: (scored[i].logprobs[position], scored[i].token_ids[position])
        if position < len(scored[i].token_ids)
        else (means[i], -1 - i)  # ended: a token that no other choice has
        for i in remaining
    }
    best = max(remaining, key=lambda i: here[i][0])
    return [i for i in remaining if here[i][1] == here[best][1]]


def _argmax(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


token_length_normalized = ChoicesMethod("token_length_normalized", _by_mean)
"""Highest mean log-probability per token: the default."""

greedy_token_selection = ChoicesMethod("greedy_token_selection", _token_by_token)
"""The choice that greedy decoding would walk into, among the choices."""

unconditional_likelihood_normalized = ChoicesMethod(
    "unconditional_likelihood_normalized", _by_gain, unconditional=True
)
"""Highest mean gain of log-probability over the same tokens without context (Brown et al. 2020,
"Language Models are Few-Shot Learners", section 2.4)."""
