"""Sampling parameters from loose fields: a mapping written by a user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, SamplingParams

CONSTRAINTS = {"json_schema": "json_schema", "regex": "regex", "ebnf": "ebnf", "choices": "choice"}
"""Field name -> kind of constraint."""


def sampling_params(fields: Mapping[str, Any] | None) -> SamplingParams:
    """``SamplingParams`` from its fields and those of ``CONSTRAINTS``.

    Raises:
        RequestError: a field is unknown or of the wrong type, or two constraints are given.
    """
    rest = dict(fields or {})
    brought = {name: rest.pop(name, None) for name in CONSTRAINTS}
    given = {name: value for name, value in brought.items() if value is not None}
    if len(given) > 1:
        raise RequestError(f"give one of {', '.join(given)}, not several", param=next(iter(given)))
    for name in rest.keys() - SamplingParams.__struct_fields__:
        known = ", ".join((*SamplingParams.__struct_fields__, *CONSTRAINTS))
        raise RequestError(f"`{name}` is unknown; there are {known}", param=name)
    for name, value in given.items():
        rest["constraint"] = constraint(name, value)
    try:
        return msgspec.convert(rest, SamplingParams)
    except msgspec.ValidationError as error:
        raise RequestError(str(error), param="sampling_params") from None


def constraint(name: str, value: Any) -> Constraint:
    """A constraint from the field that brought it; schemas and choices may be plain values.

    Raises:
        RequestError: the value is of the wrong type.
    """
    text = value
    if name == "choices" or (name == "json_schema" and not isinstance(value, str)):
        text = as_json(name, value)
    if not isinstance(text, str):
        raise RequestError(f"`{name}` must be text, not {type(value).__name__}", param=name)
    return Constraint(kind=CONSTRAINTS[name], text=text)  # type: ignore[arg-type]  # keys of a dict are not literals


def as_json(name: str, value: Any) -> str:
    if name == "choices" and not isinstance(value, list | tuple):
        raise RequestError(f"`choices` must be a list of texts, not {value!r}", param=name)
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise RequestError(f"`{name}` is not JSON: {error}", param=name) from None
