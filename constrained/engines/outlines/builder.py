"""Our end of the process that makes indexes: killed where it exceeds its limits."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import weakref
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from phloem.constrained.engines.outlines.token_graph import TokenGraph
from phloem.constrained.errors import GrammarError
from phloem.constrained.vocabulary import Vocabulary

_WORKER = Path(__file__).with_name("worker.py")
_MEMORY = 1024**3
_CPU_SECONDS = 5
_WALL_SECONDS = 10.0


class Builder:
    """Makes one index at a time. Thread-safe.

    The process starts with the first regex, stays for the next, and starts anew after one that it
    did not survive. It ends with its builder, or with ours.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def build(self, regex: str) -> TokenGraph:
        """The index of ``regex``, in the syntax of Rust.

        Raises:
            GrammarError: it is refused, or exceeds the limits.
        """
        with self._lock:
            answer = self._ask(regex)
        if isinstance(answer, str):
            raise _as_grammar_error(answer)
        return TokenGraph.read(*answer, vocab_size=self._vocabulary.size)

    def _ask(self, regex: str) -> Any:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        deadline = threading.Timer(_WALL_SECONDS, process.kill)
        deadline.start()
        try:
            pickle.dump(regex, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self._process = None
            _end(process)
            raise GrammarError(
                f"regex: outlines cannot compile it in {_CPU_SECONDS} s and 1 GiB",
                code="grammar_too_complex",
            ) from None
        finally:
            deadline.cancel()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER), str(_MEMORY), str(_CPU_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, process)
        self._process = process
        assert process.stdin is not None
        by_bytes: defaultdict[bytes, list[int]] = defaultdict(list)
        for token in sorted(self._vocabulary.text_ids):
            by_bytes[self._vocabulary.token_bytes[token]].append(token)
        pickle.dump((self._vocabulary.eos_ids[0], dict(by_bytes)), process.stdin)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # what it was sent in vain
                pipe.close()


def _as_grammar_error(answer: str) -> GrammarError:
    reason = answer.partition("\n")[0][:300]
    if "size limit" in answer or "MemoryError" in answer:
        return GrammarError(f"regex: {reason}", code="grammar_too_complex")
    return GrammarError(f"regex: {reason}")
