"""The words that programs are written in: ``gen``, ``select`` and the chat roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phloem.frontend_lang.choices import ChoicesMethod, token_length_normalized
from phloem.frontend_lang.constraints import DTYPE_STOP_REGEX, make_constraint, only_form
from phloem.frontend_lang.ir import Expr, Gen, RoleBegin, RoleEnd, Select, in_role
from phloem.frontend_lang.options import make_options
from phloem.runtime.errors import RequestError

GREEDY = 1e-5
"""Temperatures up to this one count as greedy."""


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | Sequence[str] | None = None,
    stop_token_ids: Sequence[int] | None = None,
    stop_regex: str | Sequence[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    repetition_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    seed: int | None = None,
    logit_bias: dict[int, float] | None = None,
    dtype: type | None = None,
    choices: Sequence[str] | None = None,
    choices_method: ChoicesMethod | None = None,
    regex: str | None = None,
    json_schema: Any = None,
    ebnf: str | None = None,
) -> Expr:
    """Text that the model writes here.

    What is left None comes from the run's options. With ``n`` > 1 the variable is the list of
    all texts and the program goes on with the first. ``choices`` makes it a ``select``. At most
    one of ``choices``, ``dtype``, ``regex``, ``json_schema`` (a dict, JSON text or a pydantic
    model class) and ``ebnf`` constrains the text; the variable is text in any case.

    Raises:
        RequestError: an option has the wrong type, or options exclude each other.
    """
    forms = {
        "choices": choices,
        "dtype": dtype,
        "regex": regex,
        "json_schema": json_schema,
        "ebnf": ebnf,
    }
    form = only_form(forms)
    if choices is not None:
        return select(name, choices, choices_method=choices_method or token_length_normalized)
    constraint = None if form is None else make_constraint(form, forms[form])
    options = make_options(
        {
            "max_new_tokens": max_tokens,
            "min_new_tokens": min_tokens,
            "n": n,
            "stop": stop,
            "stop_token_ids": stop_token_ids,
            "stop_regex": _stop_regexes(stop_regex, dtype),
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
            "min_p": min_p,
            "frequency_penalty": frequency_penalty,
            "presence_penalty": presence_penalty,
            "repetition_penalty": repetition_penalty,
            "ignore_eos": ignore_eos,
            "seed": seed,
            "logit_bias": logit_bias,
            "return_logprob": return_logprob,
            "logprob_start_len": logprob_start_len,
            "top_logprobs_num": top_logprobs_num,
        }
    )
    return Gen(_checked_name(name), options, constraint)


def gen_int(name: str | None = None, **options: Any) -> Expr:
    """``gen`` of an integer."""
    return gen(name, dtype=int, **options)


def gen_string(name: str | None = None, **options: Any) -> Expr:
    """``gen`` of a string in double quotes."""
    return gen(name, dtype=str, **options)


def select(
    name: str | None = None,
    choices: Sequence[str] | None = None,
    temperature: float = 0.0,
    choices_method: ChoicesMethod = token_length_normalized,
) -> Expr:
    """The one of ``choices`` that the model finds likeliest here, by ``choices_method``.

    Raises:
        RequestError: there are no choices, one is empty or there twice, or ``temperature`` is
            not 0 (nothing is drawn).
    """
    if temperature > GREEDY:
        raise RequestError("select draws nothing: temperature must be 0", param="temperature")
    if isinstance(choices, str) or not isinstance(choices, Sequence) or not choices:
        raise RequestError("choices must be a list of at least one string", param="choices")
    if not all(isinstance(choice, str) and choice for choice in choices):
        raise RequestError("each choice must be a string that is not empty", param="choices")
    if len(set(choices)) < len(choices):
        raise RequestError("a choice is there twice", param="choices")
    return Select(_checked_name(name), tuple(choices), choices_method)


def system(expr: Expr | str) -> Expr:
    """A system turn."""
    return in_role("system", expr)


def user(expr: Expr | str) -> Expr:
    """A user turn."""
    return in_role("user", expr)


def assistant(expr: Expr | str) -> Expr:
    """An assistant turn."""
    return in_role("assistant", expr)


def system_begin() -> Expr:
    """The beginning of a system turn."""
    return RoleBegin("system")


def system_end() -> Expr:
    """The end of a system turn."""
    return RoleEnd("system")


def user_begin() -> Expr:
    """The beginning of a user turn."""
    return RoleBegin("user")


def user_end() -> Expr:
    """The end of a user turn."""
    return RoleEnd("user")


def assistant_begin() -> Expr:
    """The beginning of an assistant turn."""
    return RoleBegin("assistant")


def assistant_end() -> Expr:
    """The end of an assistant turn."""
    return RoleEnd("assistant")


def _stop_regexes(given: Any, dtype: type | None) -> Any:
    """The given regexes and the one that ends a number of type ``dtype``."""
    if dtype not in DTYPE_STOP_REGEX:
        return given
    return (*([given] if isinstance(given, str) else given or ()), DTYPE_STOP_REGEX[dtype])


def _checked_name(name: Any) -> str | None:
    if name is None or isinstance(name, str):
        return name
    raise RequestError(f"a variable's name is a string, not {name!r}", param="name")
