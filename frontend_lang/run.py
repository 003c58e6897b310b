"""One run of a program: its thread, its branches, and how it ends."""

from __future__ import annotations

import threading

from phloem.frontend_lang.branch import Branch
from phloem.frontend_lang.interpreter import Context
from phloem.frontend_lang.promise import Promise


class Run:
    """Everything that ends when the program's function does.

    Attributes:
        root: the branch that the function starts with.
        owner: id of the thread that runs the function, once it does. Only that thread adds to
            branches; so what is not declared never will be while it reads, but other threads may
            wait for it in a streaming run.
        ended: kept when the function has returned or raised.
    """

    def __init__(self, context: Context) -> None:
        self.owner: int | None = None
        self.ended: Promise[None] = Promise()
        self._context = context
        self._branches: list[Branch] = []
        self.root = self.new_branch(None)

    @property
    def streaming(self) -> bool:
        """Whether text is published as it grows."""
        return self._context.streaming

    def new_branch(self, parent: Branch | None) -> Branch:
        """One more branch, with what ``parent`` has declared."""
        branch = Branch(self._context, parent)
        self._branches.append(branch)
        return branch

    def reader_waits(self) -> bool:
        """Whether the calling thread may wait for the program to go on."""
        return self.streaming and threading.get_ident() != self.owner

    def cancel(self, error: BaseException) -> None:
        """Fail what is under way and all that follows."""
        for branch in list(self._branches):
            branch.fail(error)

    def finish(self, error: BaseException | None = None) -> None:
        """End all branches; an ``error`` fails them."""
        for branch in self._branches:
            if error is not None:
                branch.fail(error)
            branch.end(error)
        self.ended.set_result(None)
