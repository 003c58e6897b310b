"""The one event loop, on a thread of its own, on which the calls of every program run.

Programs are ordinary blocking Python, wherever they are called from: a script, a thread, or
a notebook whose own loop is running. So the calls that they wait for need a loop elsewhere.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading

_lock = threading.Lock()


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process (threads do not survive an ``os.fork``)."""
    with _lock:  # or two threads that come first would make two loops
        return _loop_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _loop_of(pid: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"phloem-programs-{pid}", daemon=True).start()
    return loop
