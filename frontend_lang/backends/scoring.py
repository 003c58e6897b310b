"""Scores of choices after a text, over any backend: where tokens meet, and one batch of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from phloem.frontend_lang.backends.base import Backend
from phloem.frontend_lang.choices import Scored
from phloem.runtime.errors import RequestError


async def score_choices(
    backend: Backend, prefix: str, choices: Sequence[str], *, unconditional: bool = False
) -> list[Scored]:
    """Score ``prefix + choice`` for each choice, all at once: the cache shares the prefix.

    Every choice is tokenised together with the prefix, as the model would have read it, and
    scored from one common boundary: the end of the tokens that all of these texts and the prefix
    itself share. A token that straddles prefix and choice thus counts with every choice alike,
    and no token counts that belongs to the prefix alone.

    Raises:
        RequestError: a choice adds no token of its own.
    """
    texts = [prefix, *(prefix + choice for choice in choices)]
    tokens = await asyncio.gather(*map(backend.encode, texts))
    # One token at least must come before, for nothing predicts a text's first.
    if (shared := common_length(tokens)) == 0:
        anchor = await backend.encode("")
        tokens = [anchor + ids for ids in tokens]
        shared = len(anchor)
    for choice, ids in zip(choices, tokens[1:], strict=True):
        if len(ids) == shared:
            raise RequestError(f"choice {choice!r} adds no token to the text", param="choices")
    return await asyncio.gather(
        *(_score(backend, ids, shared, unconditional) for ids in tokens[1:])
    )


def common_length(sequences: Sequence[list[int]]) -> int:
    """Length of the longest prefix that all sequences share."""
    columns = zip(*sequences, strict=False)
    shortest = min(map(len, sequences))
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), shortest)


async def _score(backend: Backend, ids: list[int], start: int, unconditional: bool) -> Scored:
    logprobs = await backend.score(ids, start)
    alone: list[float] | None = None
    if unconditional:
        anchor = await backend.encode("")
        alone = await backend.score(anchor + ids[start:], len(anchor))
    return Scored(tuple(ids[start:]), tuple(logprobs), None if alone is None else tuple(alone))
