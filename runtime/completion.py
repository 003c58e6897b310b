"""A finished sequence as one value, collected from its deltas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from phloem.runtime.errors import GenerationError, RequestError
from phloem.runtime.protocol import Delta, ErrorInfo, Finish, TokenLogprob


@dataclass(slots=True)
class Completion:
    """One of a request's ``n`` continuations.

    ``token_ids`` and ``logprobs`` cover the generated tokens, an end-of-sequence token included;
    ``prompt_logprobs`` the prompt's scored tokens, for index 0 only.
    """

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    retractions: int = 0
    finish: Finish | None = None

    def add(self, delta: Delta) -> None:
        self.text += delta.text
        self.token_ids += delta.token_ids
        self.logprobs += delta.logprobs
        self.prompt_logprobs += delta.prompt_logprobs
        self.prompt_tokens = delta.prompt_tokens
        self.cached_tokens = delta.cached_tokens
        self.retractions = delta.retractions
        self.finish = delta.finish


async def collect(deltas: AsyncIterator[Delta], count: int) -> list[Completion]:
    """Wait for the end of all ``count`` sequences of one request.

    Raises:
        RequestError: the engine refused the request.
        GenerationError: a sequence failed.
    """
    completions = [Completion(index) for index in range(count)]
    async for delta in deltas:
        completions[delta.index].add(delta)
        if delta.finish is not None and delta.finish.error is not None:
            raise as_exception(delta.finish.error)
    return completions


def as_exception(error: ErrorInfo) -> RequestError | GenerationError:
    """The exception that a failed sequence's error stands for."""
    if 400 <= error.status < 500:
        return RequestError(
            error.message, param=error.param, code=error.code, pointer=error.pointer
        )
    return GenerationError(error.message)
