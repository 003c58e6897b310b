"""The engine process: ``python -m phloem.runtime.worker FOLDER CONFIG``.

FOLDER holds the sockets, CONFIG is an EngineConfig as JSON. The process ends when it is told to,
and when its parent is gone.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence

import msgspec

from phloem.runtime.bootstrap import build
from phloem.runtime.config import EngineConfig
from phloem.runtime.errors import ModelError
from phloem.runtime.loop import run
from phloem.runtime.sockets import EngineLink
from phloem.runtime.wire import Command, Dead, Ready, Reply, Shutdown

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""After so long a thread of Python gives way to others that want to run."""


class WatchedLink:
    """A link that ends the loop when the process at its other end has died."""

    def __init__(self, link: EngineLink, parent: int) -> None:
        self._link = link
        self._parent = parent

    def receive(self, timeout: float) -> Sequence[Command]:
        if os.getppid() != self._parent:
            return [Shutdown()]
        return self._link.receive(timeout)

    def send(self, reply: Reply) -> None:
        self._link.send(reply)


def main(folder: str, config_json: str) -> int:
    """Load, report Ready (or Dead, with the reason), serve."""
    # A Ctrl-C reaches the whole process group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s engine %(levelname)s %(message)s")
    # Grammars are compiled in threads of this process: the loop shall not wait long for its turn.
    sys.setswitchinterval(SWITCH_SECONDS)
    parent = os.getppid()
    link = EngineLink(folder)
    try:
        loaded = build(msgspec.json.decode(config_json, type=EngineConfig))
        # What was loaded stays: collections need not look at it again and again.
        gc.collect()
        gc.freeze()
        link.send(Ready(loaded.info))
        run(loaded.core, WatchedLink(link, parent))
    except ModelError as error:  # said in full by who started this process
        link.send(Dead(f"{type(error).__name__}: {error}"))
        return 1
    except Exception as error:
        logger.exception("the engine failed")
        link.send(Dead(f"{type(error).__name__}: {error}"))
        return 1
    finally:
        link.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
