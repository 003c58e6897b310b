"""What a program asks of whatever runs its model: the backend protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from phloem.runtime.protocol import SamplingParams

if TYPE_CHECKING:
    from phloem.runtime.text.roles import RoleAffixes

OnText = Callable[[str], None]
"""Receives the pieces of a completion's text as they come; together they are its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One generation: continue ``prompt`` (``sampling.n`` times).

    Attributes:
        prompt: the whole text so far, special tokens written out.
        logprob_start: first prompt position whose log-probability is wanted; None: output only.
        top_logprobs: number of alternatives to report beside each token.
        program: id of the program run, for the scheduler.
    """

    prompt: str
    sampling: SamplingParams
    return_logprob: bool = False
    logprob_start: int | None = None
    top_logprobs: int = 0
    program: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Generated text and its ``meta_info``, by SGLang's names: ``finish_reason``,
    ``prompt_tokens``, ``completion_tokens``, ``cached_tokens`` and, where asked for,
    ``output_token_logprobs`` and ``input_token_logprobs`` as (logprob, token id, text)."""

    text: str
    meta: dict[str, Any]


@runtime_checkable
class Backend(Protocol):
    """A served model. All methods run on the frontend's event loop.

    Raises:
        RequestError, OverloadedError, EngineDeadError, GenerationError: as the runtime's
            client does.
    """

    async def affixes(self) -> RoleAffixes:
        """How the model's chat template wraps each role."""

    async def encode(self, text: str) -> list[int]:
        """Token ids of a whole prompt, never empty: no text is the token that starts a text."""

    async def generate(self, call: Call, on_text: OnText | None = None) -> list[Completion]:
        """All ``n`` completions; ``on_text`` receives the first one's text as it grows."""

    async def score(self, input_ids: list[int], start: int) -> list[float]:
        """Log-probability of each token from position ``start`` >= 1 on, given those before."""

    async def flush_cache(self) -> bool:
        """Empty the prefix cache; False if requests are running."""
