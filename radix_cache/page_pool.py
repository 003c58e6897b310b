"""Pages of KV memory as numbers: a free list and a reference count for each page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phloem.radix_cache.errors import InvariantError, OutOfPages

Pages = NDArray[np.int32]

PAGE_SIZES = (1, 8, 16, 32, 64)
MAX_PAGES = np.iinfo(np.int32).max - 1
"""Page ids, the scratch page's among them, are int32."""

_ONE = np.int32(1)  # of the counts' own type, without which ufunc.at takes a slow path


class PagePool:
    """Reference-counted pages 0 .. total - 1; the one owner of the free list.

    A page is free if and only if its count is zero. Not thread-safe.

    Attributes:
        total: pages in all.
        page_size: tokens per page.
        free: pages with no reference.
    """

    def __init__(self, num_pages: int, page_size: int) -> None:
        """All pages are free.

        Raises:
            ValueError: ``num_pages`` or ``page_size`` is out of range.
        """
        check_geometry(num_pages, page_size)
        self.total = num_pages
        self.page_size = page_size
        self.free = num_pages
        self._counts = np.zeros(num_pages, dtype=np.int32)
        # The first ``free`` entries are the free pages, the next one to hand out last.
        self._stack = np.arange(num_pages, dtype=np.int32)[::-1].copy()

    def allocate(self, n: int) -> Pages:
        """Take ``n`` free pages, int32 [n], with one reference each.

        Raises:
            OutOfPages: fewer are free; none is taken.
        """
        if n < 0:
            raise ValueError(f"n: {n} pages cannot be allocated")
        if n > self.free:
            raise OutOfPages(n, self.free)
        self.free -= n
        pages = self._stack[self.free : self.free + n][::-1].copy()
        self._counts[pages] = 1
        return pages

    def retain(self, pages: Pages) -> None:
        """Add one reference to each page; a page that is named twice gets two.

        Raises:
            InvariantError: a page is free; no count is changed.
        """
        counts = self.references(pages)
        if not counts.all():
            raise InvariantError(f"page {pages[counts == 0][0]} is free and cannot be retained")
        np.add.at(self._counts, pages, _ONE)

    def release(self, pages: Pages) -> int:
        """Drop one reference to each page; returns how many pages came free.

        Raises:
            InvariantError: a page has fewer references than are dropped; no count is changed.
        """
        self.references(pages)  # checks the ids
        np.subtract.at(self._counts, pages, _ONE)
        counts = self._counts[pages]
        if counts.min(initial=0) < 0:
            np.add.at(self._counts, pages, _ONE)
            raise InvariantError(f"page {pages[counts < 0][0]} is free and cannot be released")
        freed = distinct(pages[counts == 0])
        self._stack[self.free : self.free + len(freed)] = freed[::-1]
        self.free += len(freed)
        return len(freed)

    def refcount(self, page: int) -> int:
        """References to one page; 0 if it is free.

        Raises:
            ValueError: the pool has no such page.
        """
        if not 0 <= page < self.total:
            raise ValueError(f"page: {page} is not in 0 .. {self.total - 1}")
        return int(self._counts[page])

    def references(self, pages: Pages) -> Pages:
        """The reference count of each page, int32 [len(pages)].

        Raises:
            ValueError: the pool has no such page.
        """
        # As unsigned numbers, negative ids are out of range too, instead of counted from the end.
        try:
            return self._counts[pages.astype(np.uint32)]
        except IndexError:
            raise ValueError(f"pages: an id is not in 0 .. {self.total - 1}") from None

    def check(self) -> None:
        """Compare the free list with the counts.

        Raises:
            InvariantError: they do not describe the same free pages.
        """
        listed = np.sort(self._stack[: self.free])
        uncounted = np.flatnonzero(self._counts == 0)
        if not np.array_equal(listed, uncounted):
            raise InvariantError(
                f"{self.free} pages on the free list are not the {len(uncounted)} pages "
                f"without a reference"
            )

    def __repr__(self) -> str:
        return f"<PagePool: {self.free} of {self.total} pages free>"


def check_geometry(num_pages: int, page_size: int) -> None:
    """Raise ValueError unless pages can be numbered in int32 and have a known size."""
    if not 1 <= num_pages <= MAX_PAGES:
        raise ValueError(f"num_pages: {num_pages} is not in 1 .. {MAX_PAGES}")
    if page_size not in PAGE_SIZES:
        raise ValueError(f"page_size: {page_size} is not one of {PAGE_SIZES}")


def distinct(pages: Pages) -> Pages:
    """Each page once, sorted (np.unique takes many times longer)."""
    if len(pages) < 2:
        return pages
    ordered = np.sort(pages)
    differs = ordered[1:] != ordered[:-1]
    return np.concatenate([ordered[:1], ordered[1:][differs]])
