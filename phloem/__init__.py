"""Phloem: structured generation and prefix caching for language models.

Names are imported when they are first used (PEP 562): ``import phloem`` takes no time, and torch
is loaded only by what needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phloem.frontend_lang import (
        Backend,
        Function,
        ProgramError,
        ProgramState,
        RuntimeEndpoint,
        StateGroup,
        assistant,
        assistant_begin,
        assistant_end,
        flush_cache,
        function,
        gen,
        gen_int,
        gen_string,
        greedy_token_selection,
        select,
        set_default_backend,
        system,
        system_begin,
        system_end,
        token_length_normalized,
        unconditional_likelihood_normalized,
        user,
        user_begin,
        user_end,
    )
    from phloem.runtime.errors import (
        EngineDeadError,
        GenerationError,
        ModelError,
        OverloadedError,
        PhloemError,
        RequestError,
    )
    from phloem.runtime.local import Engine
    from phloem.runtime.protocol import SamplingParams

__all__ = [
    "Backend",
    "Engine",
    "EngineDeadError",
    "Function",
    "GenerationError",
    "ModelError",
    "OverloadedError",
    "PhloemError",
    "ProgramError",
    "ProgramState",
    "RequestError",
    "RuntimeEndpoint",
    "SamplingParams",
    "StateGroup",
    "assistant",
    "assistant_begin",
    "assistant_end",
    "flush_cache",
    "function",
    "gen",
    "gen_int",
    "gen_string",
    "greedy_token_selection",
    "select",
    "set_default_backend",
    "system",
    "system_begin",
    "system_end",
    "token_length_normalized",
    "unconditional_likelihood_normalized",
    "user",
    "user_begin",
    "user_end",
]

_HOMES = {
    "Engine": "phloem.runtime.local",
    "EngineDeadError": "phloem.runtime.errors",
    "GenerationError": "phloem.runtime.errors",
    "ModelError": "phloem.runtime.errors",
    "OverloadedError": "phloem.runtime.errors",
    "PhloemError": "phloem.runtime.errors",
    "RequestError": "phloem.runtime.errors",
    "SamplingParams": "phloem.runtime.protocol",
}
"""Where a name comes from, if not from the frontend."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'phloem' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "phloem.frontend_lang")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
