"""The most that any eviction could save: Belady's rule with knowledge of the future.

Belady (1966): evict what is used again last of all. Requests come one after the other here, so
that the order is given and no page is taken by work in progress; a scheduler that reorders may do
better than this, one that has to run requests beside each other hardly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from phloem.runtime.simulator.trace import Call, spell


def most_hit_tokens(calls: Sequence[Call], pages: int, page_size: int) -> int:
    """Prompt tokens in whole pages that could come from a cache of so many pages.

    A page is used with all pages before it, so it is used again no earlier than they are; of
    pages that are used again together the deepest goes first, and what is kept stays a prefix.
    """
    paths = Paths(page_size)
    made = [paths.of(call) for call in calls]
    wanted = [
        path[: (call.prompt_length - 1) // page_size]  # a prompt's last token is computed always
        for call, path in zip(calls, made, strict=True)
    ]
    cache, hits = Belady(pages), 0
    for path, hoped, later in zip(made, wanted, next_uses(made, wanted), strict=True):
        hits += sum(page in cache for page in hoped)
        cache.use(path, later)
    return hits * page_size


class Paths:
    """Numbers for pages of tokens: equal if the tokens and all before them are."""

    def __init__(self, page_size: int) -> None:
        self._bytes = page_size * 4
        self._numbers: dict[tuple[int, bytes], int] = {}

    def of(self, call: Call) -> list[int]:
        """The pages of a call's prompt and output that become full."""
        run = spell((*call.prompt, call.output))[:-1].tobytes()  # the last token is not computed
        path, above = [], -1
        for at in range(0, len(run) - self._bytes + 1, self._bytes):
            key = (above, run[at : at + self._bytes])
            above = self._numbers.setdefault(key, len(self._numbers))
            path.append(above)
        return path


def next_uses(made: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[list[float]]:
    """For each page that a request made: index of the next that wants it, or infinity."""
    upcoming: dict[int, int] = {}
    found: list[list[float]] = []
    for index in reversed(range(len(made))):
        found.append([upcoming.get(page, math.inf) for page in made[index]])
        upcoming.update(dict.fromkeys(wanted[index], index))
    return found[::-1]


class Belady:
    """A cache of pages that knows when each will be used again."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._next: dict[int, float] = {}
        self._last: list[tuple[float, int, int]] = []  # (- next use, - depth, page), some outdated

    def __contains__(self, page: int) -> bool:
        return page in self._next

    def use(self, path: Sequence[int], later: Sequence[float]) -> None:
        """Use pages in turn, then evict; pages that are never used again are not kept."""
        for depth, (page, time) in enumerate(zip(path, later, strict=True)):
            if time == math.inf:
                self._next.pop(page, None)
            else:
                self._next[page] = time
                heapq.heappush(self._last, (-time, -depth, page))
        while len(self._next) > self._pages:
            time, _, page = heapq.heappop(self._last)
            if self._next.get(page) == -time:
                del self._next[page]
