"""The driver's end of a contestant's process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers.peer import Output, Settings

BENCHMARKS = Path(__file__).parent.parent


class ContestantError(RuntimeError):
    """A contestant could not start, failed at a request or ended."""


class Contestant:
    """An engine in a process of its own: started here, idle between requests.

    ``name`` is an engine, perhaps with ``:variant``. What the process prints goes to a log in
    the cache.

    Raises:
        ContestantError: the engine's package or model is absent, or it cannot start.
    """

    def __init__(self, name: str, python: str, settings: Settings) -> None:
        self.name = name
        self._log = Path(settings.cache) / f"{name.replace(':', '-')}.log"
        command = [python, "-m", "peers.worker", name.partition(":")[0]]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, json.dumps(asdict(settings))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=BENCHMARKS,
                env=os.environ | {"OMP_NUM_THREADS": str(settings.threads)},
            )
        try:
            self.description: str = self._receive()["description"]
        except ContestantError:
            self.close()
            raise

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        """See ``Peer.generate``.

        Raises:
            ContestantError: the engine failed, or its process ended.
        """
        request = json.dumps({"prompts": prompts, "length": length})
        try:
            print(request, file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise ContestantError(f"its process has ended, see {self._log}") from error
        return [Output(**output) for output in self._receive()["outputs"]]

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ContestantError(f"its process has ended, see {self._log}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContestantError(answer["error"])
        return answer
