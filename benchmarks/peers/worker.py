"""A contestant's process: ``python -m peers.worker ENGINE SETTINGS``, a JSON line per request.

The first line out is ``{"description": ...}`` once the engine is loaded; each line in is
``{"prompts": [[int]], "length": int}`` and its answer ``{"outputs": [{"tokens", "times"}]}``.
What fails is answered ``{"error": ...}``. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any, TextIO

from peers.peer import Peer, Settings

Answer = dict[str, Any]


def main() -> None:
    engine, settings = sys.argv[1:]
    channel = claim_stdout()
    peers: list[Peer] = []

    def load() -> Answer:
        module = import_module("peers." + engine.replace(".", "_"))
        peers.append(module.load(Settings(**json.loads(settings))))
        return {"description": peers[0].description}

    send(channel, answer(load))
    for line in sys.stdin:
        request = json.loads(line)
        send(channel, answer(partial(generate, peers[0], **request)))


def generate(peer: Peer, prompts: list[list[int]], length: int) -> Answer:
    outputs = peer.generate(prompts, length)
    if any(len(output.tokens) != length for output in outputs):
        raise RuntimeError(f"fewer or more than {length} tokens came")
    return {"outputs": [asdict(output) for output in outputs]}


def answer(work: Callable[[], Answer]) -> Answer:
    """What ``work`` gives, or its failure."""
    try:
        return work()
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def claim_stdout() -> TextIO:
    """The pipe to the driver; what libraries print on stdout goes to stderr from now on."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def send(channel: TextIO, message: Answer) -> None:
    print(json.dumps(message), file=channel, flush=True)


if __name__ == "__main__":
    main()
