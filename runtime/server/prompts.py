"""Prompts as the APIs take them: a text, token ids, or a list of either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from phloem.runtime.errors import RequestError
from phloem.runtime.server.service import Service

Prompt = str | list[int]


def split(prompt: str | Sequence[str | int | list[int]], param: str) -> list[Prompt]:
    """The single prompts.

    Raises:
        RequestError: there is none, or the list mixes kinds.
    """
    if isinstance(prompt, str):
        return [prompt]
    kinds = set(map(type, prompt))
    if kinds == {int}:
        return [cast("list[int]", prompt)]
    if len(kinds) != 1:
        problem = "mixes texts and token ids" if kinds else "is empty"
        raise RequestError(f"`{param}` {problem}", param=param)
    return cast("list[Prompt]", prompt)


async def token_ids(
    service: Service, prompts: list[Prompt], *, special: bool = True
) -> list[list[int]]:
    """Each prompt's token ids; prompts are all texts or all ids. ``special`` as in ``encode``."""
    if isinstance(prompts[0], str):
        return await service.encode(cast("list[str]", prompts), special=special)
    return cast("list[list[int]]", prompts)
