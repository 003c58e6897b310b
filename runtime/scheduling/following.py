"""In-batch prefix caching: a waiting sequence follows one that runs and computes its prefix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from phloem.runtime.scheduling.sequence import Sequence

MIN_SHARED = 32
"""A waiting sequence follows a running one's prefill if that spares so many tokens more."""

Head = tuple[str, bytes]


class Leaders:
    """Running sequences whose prompts are not computed yet, by what prompts begin with.

    Who would gain MIN_SHARED tokens shares the first ones at least, so a look-up by these finds
    every leader that matters, and costs the same however many there are.
    """

    def __init__(self, running: Iterable[Sequence], page_size: int) -> None:
        self._page_size = page_size
        self._by_head: dict[Head, list[Sequence]] = defaultdict(list)
        for seq in running:
            self.add(seq)

    def add(self, seq: Sequence) -> None:
        if seq.prefilling:
            self._by_head[head(seq)].append(seq)

    def of(self, seq: Sequence) -> list[Sequence]:
        """Those that begin as ``seq`` does."""
        return self._by_head.get(head(seq), []) if self._by_head else []

    def ahead(self, seq: Sequence, leader: Sequence) -> int:
        """Tokens of ``seq`` in whole pages that ``leader`` will have put into the tree."""
        shared = common_prefix(seq, leader, min(seq.reusable, leader.prompt_length))
        return shared // self._page_size * self._page_size


def head(seq: Sequence) -> Head:
    return seq.namespace, seq.tokens.view()[:MIN_SHARED].tobytes()


def common_prefix(a: Sequence, b: Sequence, limit: int) -> int:
    """How many of the first ``limit`` known tokens are equal."""
    limit = min(limit, len(a.tokens), len(b.tokens))
    different = a.tokens.view()[:limit] != b.tokens.view()[:limit]
    return int(np.argmax(different)) if different.any() else limit
