"""Who wants to know what changes in a tree."""

from __future__ import annotations

from typing import Protocol

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.results import Insert
from phloem.radix_cache.runs import Tokens


class Listener(Protocol):
    """Told of every change as it happens."""

    def inserted(self, namespace: str, tokens: Tokens, insert: Insert) -> None:
        """The pages of ``tokens`` from ``insert.known`` on are new to the tree."""

    def evicted(self, run: Pages) -> None:
        """A run's pages leave the tree; they still hold what they held there."""

    def cleared(self) -> None:
        """The tree was emptied."""
