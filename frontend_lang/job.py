"""A program with its arguments and its state: one execution of the function."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from phloem.frontend_lang.backends.base import Backend
from phloem.frontend_lang.interpreter import Context
from phloem.frontend_lang.options import Options
from phloem.frontend_lang.run import Run
from phloem.frontend_lang.state import ProgramState


class Job:
    """``func(state, *args, **kwargs)``, to be executed once, in whatever thread."""

    def __init__(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        backend: Backend,
        defaults: Options,
        streaming: bool = False,
    ) -> None:
        self._func, self._args, self._kwargs = func, args, kwargs
        self._run = Run(Context(uuid.uuid4().hex, backend, defaults, streaming))
        self.state = ProgramState(self._run, self._run.root)

    def execute(self) -> None:
        """Call the function. What it raises also fails what is left of the state."""
        self._run.owner = threading.get_ident()
        try:
            self.state.ret_value = self._func(self.state, *self._args, **self._kwargs)
        except BaseException as error:
            self._run.finish(error)
            raise
        self._run.finish()

    def execute_quietly(self) -> None:
        """``execute`` where nobody can catch what it raises: ``state.error()`` tells."""
        with suppress(Exception):
            self.execute()

    def complete(self) -> None:
        """``execute_quietly``, and wait until everything that it queued has ended."""
        self.execute_quietly()
        self.state.sync()

    def cancel(self, error: BaseException) -> None:
        """Fail whatever is under way and whatever follows with ``error``."""
        self._run.cancel(error)
