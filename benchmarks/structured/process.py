"""A process that answers lines of JSON, started anew when it hangs or dies."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

BENCHMARKS = Path(__file__).parent.parent
_WALL = 5
"""A line may take so many times its limit of processor time by the clock."""


class Process:
    """``command`` must print one line when it is ready, and then one for each that it reads.

    A limit is ``seconds`` of processor time for an answer, the first too.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = command
        self._seconds = seconds
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as this
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> Any:
        """Returns the first line.

        Raises:
            TimeoutError: it takes too long.
            EOFError: it ended; the message is the last that it printed on stderr.
        """
        self._running = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=BENCHMARKS,
            env=os.environ | {"OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"},
        )
        return self._receive(self._running)

    def ask(self, line: bytes) -> Any:
        """The answer to ``line``, from a new process if the last one failed; see `start`."""
        if self._running is None:
            self.start()
        assert self._running is not None and self._running.stdin is not None
        try:
            self._running.stdin.write(line + b"\n")
            self._running.stdin.flush()
        except BrokenPipeError:
            self.stop()
            raise EOFError(self._last_words()) from None
        return self._receive(self._running)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None

    def _receive(self, running: subprocess.Popen[bytes]) -> Any:
        assert running.stdout is not None
        spent, started = _cpu_seconds(running.pid), time.monotonic()
        while not select.select([running.stdout], [], [], 0.2)[0]:
            late = time.monotonic() - started > _WALL * self._seconds
            if late or _cpu_seconds(running.pid) - spent > self._seconds:
                self.stop()
                raise TimeoutError(f"over {self._seconds:g} s")
        line = running.stdout.readline()
        if not line:
            self.stop()
            raise EOFError(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 500))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it ended without a word"


def _cpu_seconds(process: int) -> float:
    """Processor time that ``process`` and the children that it waited for took so far."""
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
