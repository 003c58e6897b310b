"""Where programs run: the backends and the choice between them."""

from __future__ import annotations

import asyncio
from typing import Any

from phloem.frontend_lang.backends.base import Backend, Call, Completion
from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.loop import event_loop

__all__ = ["Backend", "Call", "Completion", "as_backend", "flush_cache", "set_default_backend"]

_default: Backend | None = None


def set_default_backend(backend: Any) -> None:
    """Let programs run on ``backend`` where their run names none; None means no default.

    ``backend`` is an ``Engine`` (or anything with a runtime client as ``.client``), such
    a client itself, a ``RuntimeEndpoint``, or any object of the ``Backend`` protocol.

    Raises:
        TypeError: it is none of these.
    """
    global _default
    _default = None if backend is None else as_backend(backend)


def as_backend(backend: Any = None) -> Backend:
    """``backend`` in any of its forms, or the default one, as a ``Backend``.

    Raises:
        ProgramError: there is neither.
        TypeError: it is none of the forms.
    """
    if backend is None:
        if _default is None:
            raise ProgramError(
                "no backend: call set_default_backend(Engine(...)) or pass backend= to the run"
            )
        return _default
    if isinstance(backend, Backend):
        return backend
    client = getattr(backend, "client", backend)
    if not hasattr(client, "generate") or not hasattr(client, "tokenizer"):
        raise TypeError(f"{type(backend).__name__} is no backend, engine or runtime client")
    from phloem.frontend_lang.backends.engine import EngineBackend

    return EngineBackend(client)


def flush_cache(backend: Any = None) -> bool:
    """Empty the prefix cache of ``backend`` (the default one if None).

    Returns:
        False if nothing was done because requests are running.
    """
    flushed = as_backend(backend).flush_cache()
    return asyncio.run_coroutine_threadsafe(flushed, event_loop()).result()
