"""What can go wrong with pages, as types."""

from __future__ import annotations


class OutOfPages(Exception):
    """The pool has fewer free pages than were asked for; nothing was taken."""

    def __init__(self, wanted: int, free: int) -> None:
        super().__init__(f"{wanted} pages wanted, {free} free")
        self.wanted = wanted
        self.free = free


class InvariantError(Exception):
    """The accounts of pages, references or locks do not add up.

    This is a defect of the program, never of its input: nothing is repaired.
    """
