"""What the tree answers."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.radix_cache.node import Node
from phloem.radix_cache.page_pool import Pages


@dataclass(frozen=True, slots=True)
class Partial:
    """A cached page that begins as the query goes on: its first ``tokens`` tokens are the same.

    No lock of the match covers the page; retain it until it has been copied.
    """

    page: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Match:
    """The longest cached prefix of a query.

    Attributes:
        length: tokens in whole pages.
        pages: int32 [length / page_size].
        node: handle to lock before anything is inserted or evicted.
        partial: the longest head that the next page shares with the query, if any.
    """

    length: int
    pages: Pages
    node: Node
    partial: Partial | None


@dataclass(frozen=True, slots=True)
class Insert:
    """A sequence that is in the tree now.

    Attributes:
        known: how many of its tokens were there before.
        pages: int32, the tree's pages for all of it.
        node: handle of its end, to lock.
    """

    known: int
    pages: Pages
    node: Node
