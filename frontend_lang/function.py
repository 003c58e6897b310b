"""Programs: Python functions that receive a state, and the ways to run them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Literal

from phloem.frontend_lang.backends import as_backend
from phloem.frontend_lang.batch import complete_all, thread_count
from phloem.frontend_lang.job import Job
from phloem.frontend_lang.options import OPTION_NAMES, Options, make_options
from phloem.frontend_lang.state import ProgramState

Item = Mapping[str, Any] | Sequence[Any]


class Function:
    """A program, made by ``@function``.

    The options of a run (``temperature=0`` and so on; ``options.Options`` names them all) hold
    for every ``gen`` in it that does not set its own. A name that is both an option and
    a parameter of the program means the parameter.
    """

    def __init__(self, func: Callable[..., Any], bound: Mapping[str, Any] | None = None) -> None:
        self._signature = _program_signature(func)
        self._func = func
        self._bound = dict(bound or {})
        update_wrapper(self, func)

    def bind(self, **arguments: Any) -> Function:
        """The same program with some of its arguments given."""
        return Function(self._func, {**self._bound, **arguments})

    def run(
        self, *args: Any, stream: bool = False, backend: Any = None, **kwargs: Any
    ) -> ProgramState:
        """Run the program and return its state.

        The function runs in the calling thread. What it queued last may still be under way when
        it returns; reading the state waits for it. With ``stream`` the function runs in a thread
        of its own and the state is returned at once, to be read with ``text_iter``; what the
        function raises is then raised by reading.

        Raises:
            RequestError: an option has the wrong type.
            TypeError: the arguments do not fit the program's parameters.
            ProgramError: there is no backend.
            Exception: whatever the function raises, which includes what failed a value it read.
        """
        arguments, options = self._split(kwargs)
        args, arguments = self._bind(args, arguments)
        job = Job(
            self._func,
            args,
            arguments,
            backend=as_backend(backend),
            defaults=options,
            streaming=stream,
        )
        if stream:
            threading.Thread(target=job.execute_quietly, daemon=True).start()
        else:
            job.execute()
        return job.state

    __call__ = run

    def run_batch(
        self,
        batch: Sequence[Item],
        *,
        num_threads: int | Literal["auto"] = "auto",
        progress_bar: bool = False,
        backend: Any = None,
        **options: Any,
    ) -> list[ProgramState]:
        """Run the program once for each item of ``batch``; the states, when all have ended.

        An item is a mapping or a sequence of the program's arguments. An item that fails affects
        no other: its ``error()`` tells, and reading what it lacks raises that.

        Raises:
            RequestError: an option has the wrong type, or ``num_threads`` is not positive.
            TypeError: an item does not fit the program's parameters, or an option is not known.
            ProgramError: there is no backend.
        """
        unknown, defaults = self._split(options)
        if unknown:
            raise TypeError(f"run_batch got unknown options: {', '.join(unknown)}")
        thread_count(num_threads)
        resolved = as_backend(backend)
        jobs = [
            Job(self._func, args, kwargs, backend=resolved, defaults=defaults)
            for args, kwargs in (self._item(index, item) for index, item in enumerate(batch))
        ]
        complete_all(jobs, num_threads, progress_bar)
        return [job.state for job in jobs]

    def _split(self, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Options]:
        """The program's own arguments and the run's options."""
        names = OPTION_NAMES - self._signature.parameters.keys()
        arguments = {name: value for name, value in kwargs.items() if name not in names}
        return arguments, make_options({k: v for k, v in kwargs.items() if k in names})

    def _bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments completed by the bound ones; TypeError if they do not fit."""
        merged = {**self._bound, **kwargs}
        self._signature.bind(None, *args, **merged)
        return tuple(args), merged

    def _item(self, index: int, item: Item) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            if isinstance(item, Mapping):
                return self._bind((), item)
            if isinstance(item, Sequence) and not isinstance(item, str):
                return self._bind(item, {})
        except TypeError as error:
            raise TypeError(f"batch item {index}: {error}") from None
        raise TypeError(f"batch item {index} must be a mapping or a sequence of arguments")


def function(func: Callable[..., Any]) -> Function:
    """Make a program of a function whose first parameter, ``s``, is the program's state.

    Raises:
        TypeError: the first parameter is not ``s``, or the function is asynchronous.
    """
    return Function(func)


def _program_signature(func: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(func)
    if next(iter(signature.parameters), None) != "s":
        raise TypeError(f"the first parameter of a program must be named 's': {func!r}")
    if inspect.iscoroutinefunction(func) or inspect.isgeneratorfunction(func):
        raise TypeError(f"a program must be an ordinary function: {func!r}")
    return signature
