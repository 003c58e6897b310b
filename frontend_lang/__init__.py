"""The DSL: programs of generation calls over shared prefixes."""

from phloem.frontend_lang.api import (
    assistant,
    assistant_begin,
    assistant_end,
    gen,
    gen_int,
    gen_string,
    select,
    system,
    system_begin,
    system_end,
    user,
    user_begin,
    user_end,
)
from phloem.frontend_lang.backends import Backend, flush_cache, set_default_backend
from phloem.frontend_lang.backends.http import RuntimeEndpoint
from phloem.frontend_lang.choices import (
    greedy_token_selection,
    token_length_normalized,
    unconditional_likelihood_normalized,
)
from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.fork import StateGroup
from phloem.frontend_lang.function import Function, function
from phloem.frontend_lang.state import ProgramState

__all__ = [
    "Backend",
    "Function",
    "ProgramError",
    "ProgramState",
    "RuntimeEndpoint",
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
