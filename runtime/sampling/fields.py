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
    given = {name: rest.pop(name) for name in CONSTRAINTS if rest.get(name) is not None}
    if len(given) > 1:
        raise RequestError(f"give one of {', '.join(given)}, not several", param=next(iter(given)))
    unknown = rest.keys() - SamplingParams.__struct_fields__
    if unknown:
        names = ", ".join(SamplingParams.__struct_fields__)
        raise RequestError(f"unknown: it is none of {names}", param=sorted(unknown)[0])
    for name, value in given.items():
        rest["constraint"] = constraint(name, value)
    try:
        return msgspec.convert(rest, SamplingParams)
    except msgspec.ValidationError as error:
        raise RequestError(str(error), param="sampling_params") from None


def constraint(name: str, value: Any) -> Constraint:
    """A constraint from the field that brought it; schemas and choices may be plain values."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Constraint(kind=CONSTRAINTS[name], text=text)  # type: ignore[arg-type]  # keys of a dict are not literals
