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

_PAGE = 64 * 1024
_starting = threading.Lock()


def for_text(length: int) -> int:
    """Bytes of stack that suffice for ``length`` characters of grammar.

    A level takes at least 30 of them. The stack is address space: only what is touched becomes
    memory.
    """
    return 64 * 1024 * 1024 + 1024 * length


def call(function: Callable[[], T], stack_bytes: int) -> T:
    """``function()``, its result or its exception."""
    future: Future[T] = Future()
    thread = threading.Thread(target=_run, args=(function, future), name="deep-stack", daemon=True)
    with _starting:  # the stack size is a setting of the process, for threads started from now on
        before = threading.stack_size(_whole_pages(stack_bytes))
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return future.result()


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _run(function: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # handed to the caller, whatever it is
        future.set_exception(error)
