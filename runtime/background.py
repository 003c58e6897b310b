"""An event loop in a thread of its own, for those who do not await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from phloem.runtime.completion import as_exception
from phloem.runtime.errors import EngineDeadError
from phloem.runtime.protocol import Delta

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines for callers in any thread, which wait for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns.

        Raises:
            EngineDeadError: the loop was closed.
        """
        if self.is_closed:
            work.close()
            raise EngineDeadError("the engine was shut down")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

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
            self.run(_leave(deltas))

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _advance(deltas: AsyncGenerator[Delta, None]) -> Delta | None:
    return await anext(deltas, None)


async def _leave(deltas: AsyncGenerator[Delta, None]) -> None:
    await deltas.aclose()
