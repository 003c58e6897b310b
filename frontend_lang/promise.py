"""Values and texts that one side produces and any number of threads and event loops read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Promise(Future[T], Generic[T]):
    """A value kept once: ``result()`` from a thread, ``await`` from any event loop."""

    def __init__(self) -> None:
        super().__init__()
        # A running future cannot be cancelled, so a reader that is cancelled leaves it alone.
        self.set_running_or_notify_cancel()

    @classmethod
    def kept(cls, value: T) -> Promise[T]:
        """A promise that already holds ``value``."""
        promise = cls()
        promise.set_result(value)
        return promise

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()


class Stream:
    """Text that grows: a linked list of promises, so that every reader starts at the beginning."""

    def __init__(self) -> None:
        self._head: Promise[tuple[str, Any] | None] = Promise()
        self._tail = self._head

    def feed(self, text: str) -> None:
        """Append ``text``; readers never see an empty piece."""
        if text:
            following: Promise[tuple[str, Any] | None] = Promise()
            self._tail.set_result((text, following))
            self._tail = following

    def close(self, error: BaseException | None = None) -> None:
        """End the stream, with ``error`` for its readers where there is one."""
        if self._tail.done():
            return
        if error is None:
            self._tail.set_result(None)
        else:
            self._tail.set_exception(error)

    def __iter__(self) -> Iterator[str]:
        node = self._head
        while (link := node.result()) is not None:
            text, node = link
            yield text

    async def __aiter__(self) -> AsyncIterator[str]:
        node = self._head
        while (link := await node) is not None:
            text, node = link
            yield text
