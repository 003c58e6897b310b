"""Request fields that the APIs share, and what they become in the engine's terms."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, SamplingParams
from phloem.runtime.sampling.fields import CONSTRAINTS, constraint

SAME_NAME = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "seed",
    "n",
    "ignore_eos",
    "skip_special_tokens",
    "no_stop_trim",
)
"""Fields that SamplingParams has under the same name and type."""


class SamplingFields(msgspec.Struct, kw_only=True):
    """How to sample; absent fields take the defaults of SamplingParams."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    stop_regex: str | list[str] | None = None
    ignore_eos: bool | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    no_stop_trim: bool | None = None
    json_schema: str | dict[str, Any] | bool | None = None
    regex: str | None = None
    ebnf: str | None = None
    choices: list[str] | None = None


ROUTING = ("priority", "extra_key", "cache_salt", "pin_ttl", "program", "calls_left")
"""Fields that GenerateRequest has under the same name and type."""


def sampling_params(
    fields: SamplingFields,
    *,
    max_new_tokens: int | None,
    min_new_tokens: int | None,
    constraint: Constraint | None,
) -> SamplingParams:
    """The engine's parameters; limits are left to ``phloem.runtime.validation``."""
    if fields.spaces_between_special_tokens is False:
        raise RequestError(
            "`spaces_between_special_tokens` can only be true",
            param="spaces_between_special_tokens",
            code="unsupported_field",
        )
    return SamplingParams(
        max_new_tokens=max_new_tokens,
        min_new_tokens=min_new_tokens or 0,
        stop=as_tuple(fields.stop),
        stop_token_ids=tuple(fields.stop_token_ids or ()),
        stop_regex=as_tuple(fields.stop_regex),
        constraint=constraint,
        **given(fields, SAME_NAME),
    )


def given(fields: msgspec.Struct, names: Iterable[str]) -> dict[str, Any]:
    """Those of the named fields that are set."""
    values = ((name, getattr(fields, name)) for name in names)
    return {name: value for name, value in values if value is not None}


def as_tuple(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def constraints(fields: SamplingFields) -> dict[str, Constraint]:
    """The constraints that ``fields`` sets, by the field's name."""
    return {name: constraint(name, value) for name, value in given(fields, CONSTRAINTS).items()}


def the_one(found: dict[str, Constraint]) -> tuple[str, Constraint | None]:
    """The only constraint and the field that set it.

    Raises:
        RequestError: there are several.
    """
    if len(found) > 1:
        names = " and ".join(f"`{name}`" for name in found)
        raise RequestError(f"{names} exclude each other", param=list(found)[1])
    return next(iter(found.items()), ("constraint", None))


def new_id(prefix: str = "") -> str:
    return prefix + uuid.uuid4().hex
