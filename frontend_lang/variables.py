"""The variables of one state: declared by the program's thread, given values by its strand."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from phloem.frontend_lang.promise import Promise, Stream


@dataclass(frozen=True, slots=True)
class Value:
    """What a variable came to be; ``meta`` tells how (a list of both where ``n`` > 1)."""

    value: Any
    meta: Any = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable; ``chunks`` is its text as it grows, where the program streams."""

    value: Promise[Value]
    chunks: Stream | None = None


class Variables:
    """Names to variables. A name declared again means its latest variable."""

    def __init__(self, declared: dict[str, Variable] | None = None) -> None:
        self._declared = dict(declared or {})
        self._awaited: dict[str, Promise[Variable]] = {}
        self._error: BaseException | None = None
        self._closed = False
        self._lock = threading.Lock()

    def declare(self, name: str, variable: Variable) -> None:
        """Let ``name`` mean ``variable`` from now on."""
        with self._lock:
            self._declared[name] = variable
            awaited = self._awaited.pop(name, None)
        if awaited is not None:
            awaited.set_result(variable)

    def find(self, name: str, wait: bool) -> Promise[Variable]:
        """The variable, once declared; with ``wait`` that may be later than now.

        The promise fails with the error that ended the program before it declared the variable,
        or with KeyError where the variable is never declared.
        """
        with self._lock:
            if name in self._declared:
                return Promise.kept(self._declared[name])
            promise = self._awaited.get(name) or Promise()
            if wait and not self._closed:
                self._awaited[name] = promise
                return promise
            promise.set_exception(self._error or self._unknown(name))
            return promise

    def close(self, error: BaseException | None = None) -> None:
        """Declare nothing more; ``error`` is why, where the program failed."""
        with self._lock:
            self._closed, self._error = True, error
            awaited, self._awaited = self._awaited, {}
        for name, promise in awaited.items():
            promise.set_exception(error or self._unknown(name))

    def snapshot(self) -> dict[str, Variable]:
        """All that is declared now."""
        with self._lock:
            return dict(self._declared)

    def _unknown(self, name: str) -> KeyError:
        known = ", ".join(map(repr, self._declared)) or "none"
        return KeyError(f"no variable {name!r} in this state; its variables: {known}")
