"""An event loop in a thread of its own, for those who do not await."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from phloem.runtime.completion import as_exception
from phloem.runtime.errors import EngineDeadError
from phloem.runtime.protocol import Delta

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines for callers in any thread, which wait for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be run: it was closed, or its thread is in the parent process."""
        return self._closing or os.getpid() != self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns.

        Raises:
            EngineDeadError: the loop was closed, or this is a child of the process that made it.
        """
        return self._submit(work).result()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if not self.is_closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        if not self._closing:
            raise EngineDeadError("the engine runs in the parent of this process: make a new one")
        raise EngineDeadError("the engine was shut down")

    def stream(self, deltas: AsyncGenerator[Delta, None]) -> Iterator[Delta]:
        """The deltas as they come; leaving this iterator early ends their request.

        Raises (at any step):
            RequestError, GenerationError: a sequence failed.
        """
        try:
            while (delta := self.run(_advance(deltas))) is not None:
                if delta.finish is not None and delta.finish.error is not None:
                    raise as_exception(delta.finish.error)
                yield delta
        finally:
            if not self.is_closed:
                self.run(_leave(deltas))

    def close(self) -> None:
        """Let what runs come to its end, then end the loop and its thread."""
        with self._lock:
            if self.is_closed:
                return
            self._closing = True
        asyncio.run_coroutine_threadsafe(_others_done(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _advance(deltas: AsyncGenerator[Delta, None]) -> Delta | None:
    return await anext(deltas, None)


async def _leave(deltas: AsyncGenerator[Delta, None]) -> None:
    await deltas.aclose()


async def _others_done() -> None:
    """Wait for all tasks of this loop but this one."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
