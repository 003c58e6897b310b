"""One state's actions, in order, as one small task on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from phloem.frontend_lang.actions import Action
from phloem.frontend_lang.interpreter import Context, Interpreter
from phloem.frontend_lang.ir import Gen, Select
from phloem.frontend_lang.loop import event_loop
from phloem.frontend_lang.promise import Promise, Stream


@dataclass(frozen=True, slots=True)
class _Operation:
    action: Action
    result: Promise[Any]
    chunks: Stream | None

    def refuse(self, error: BaseException) -> None:
        self.result.set_exception(error)
        if self.chunks is not None:
            self.chunks.close(error)


class Strand:
    """Executes actions one after another; the first error fails all that follow with it.

    ``submit`` and ``fail`` may be called from any thread; everything else happens on the loop.
    There is a task only while there is work, so a state that nobody uses any more costs nothing.
    """

    def __init__(self, context: Context) -> None:
        self._interpreter = Interpreter(context)
        self._error: BaseException | None = None
        self._queue: deque[_Operation] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def published(self) -> Stream:
        """The state's text as it grows."""
        return self._interpreter.published

    def submit(self, action: Action, chunks: Stream | None = None) -> Promise[Any]:
        """Queue ``action`` and promise what it yields. ``chunks`` ends with the action."""
        operation = _Operation(action, Promise(), chunks)
        self._queue.append(operation)
        event_loop().call_soon_threadsafe(self._wake)
        return operation.result

    def fail(self, error: BaseException) -> None:
        """Stop the action that runs and fail it and all that follow with ``error``."""
        event_loop().call_soon_threadsafe(self._fail, error)

    def _wake(self) -> None:
        if self._task is None and self._queue:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        if self._task is not None:
            self._task.cancel()

    async def _drain(self) -> None:
        while self._queue:
            operation = self._queue.popleft()
            if self._error is None:
                await self._attempt(operation)
            else:
                operation.refuse(self._error)
        self._task = None

    async def _attempt(self, operation: _Operation) -> None:
        try:
            result = await self._interpreter.execute(operation.action, operation.chunks)
        except (Exception, asyncio.CancelledError) as error:
            self._error = self._error or _noted(error, operation.action)
            operation.refuse(self._error)
        else:
            operation.result.set_result(result)


def _noted(error: BaseException, action: Action) -> BaseException:
    """``error`` with what it failed; one that failed other requests before keeps its note."""
    if isinstance(action, Gen | Select) and not hasattr(error, "__notes__"):
        error.add_note(f"while computing the program variable {action.name!r}")
    return error
