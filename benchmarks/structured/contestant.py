"""The driver's end of an engine's processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from structured.cases import Case
from structured.examination import Outcome
from structured.process import Process


class ContestantError(RuntimeError):
    """An engine could not start: mostly, its package is absent."""


@dataclass(frozen=True)
class Terms:
    """How an engine's process is started, and what a schema with its instances may take.

    ``seconds`` are of processor time; ``memory`` bounds the process's address space, in bytes.
    """

    name: str
    python: str
    tokens: Path
    seconds: float
    memory: int

    @property
    def command(self) -> list[str]:
        return [
            self.python, "-m", "structured.worker", self.name, str(self.tokens), str(self.memory),
        ]  # fmt: skip


class Result(NamedTuple):
    case: Case
    outcome: Outcome


class Contestant:
    """An engine in ``workers`` processes.

    Raises:
        ContestantError: the engine cannot start.
    """

    def __init__(self, terms: Terms, workers: int) -> None:
        self._terms = terms
        self._processes = [Process(terms.command, terms.seconds) for _ in range(workers)]
        try:
            answer = self._processes[0].start()
        except (EOFError, TimeoutError) as error:
            answer = {"error": str(error)}
        if "error" in answer:
            self.close()
            raise ContestantError(answer["error"])
        self.description: str = answer["description"]
        self.peak = 0
        """Most memory that a process took, in bytes."""

    def examine(self, cases: Iterable[Case]) -> Iterator[Result]:
        """The cases in their order, each with its outcome."""
        idle: SimpleQueue[Process] = SimpleQueue()
        for process in self._processes:
            idle.put(process)

        def one(case: Case) -> Result:
            process = idle.get()
            try:
                return Result(case, self._ask(process, case.text()))
            finally:
                idle.put(process)

        with ThreadPoolExecutor(len(self._processes)) as pool:
            yield from pool.map(one, cases)

    def close(self) -> None:
        for process in self._processes:
            process.stop()

    def _ask(self, process: Process, text: bytes) -> Outcome:
        try:
            answer = process.ask(text)
        except TimeoutError as error:
            return _failed(text, "timed out", error)
        except EOFError as error:
            return _failed(text, "crashed", error)
        self.peak = max(self.peak, answer["peak"])
        if answer["peak"] > self._terms.memory // 2:
            process.stop()
        return Outcome.read(answer["outcome"])


def _failed(text: bytes, verdict: str, error: Exception) -> Outcome:
    return Outcome(json.loads(text)["name"], verdict, keyword=verdict, message=str(error))
