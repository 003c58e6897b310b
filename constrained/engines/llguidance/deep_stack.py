"""Run a function on a thread with a large stack.

llguidance compiles by recursion, 8 to 16 KiB of stack a level: a chain of a thousand ``$ref`` or
EBNF rules, well within the size limits, would overflow a default stack and end the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

STACK_BYTES = 256 * 1024 * 1024
"""Address space, of which only what is touched becomes memory."""

_starting = threading.Lock()


def call(function: Callable[[], T]) -> T:
    """``function()``, its result or its exception."""
    future: Future[T] = Future()
    thread = threading.Thread(target=_run, args=(function, future), name="deep-stack", daemon=True)
    with _starting:  # the stack size is a setting of the process, for threads started from now on
        before = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return future.result()


def _run(function: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # handed to the caller, whatever it is
        future.set_exception(error)
