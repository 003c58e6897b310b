"""The constraint that a ``gen`` asks for, from any of the forms that users write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint

DTYPE_REGEX = {
    int: r"[-+]?[0-9]{1,18}([^0-9](.|\n)*)?",
    float: r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?(([^0-9.]|\.[^0-9])(.|\n)*)?",
    bool: r"True|False",
    str: r'"[^"\\\x00-\x1f]*"',
}
DTYPE_STOP_REGEX = {int: r"(?<=[0-9])[^0-9]", float: r"(?<=[0-9])([^0-9.]|\.[^0-9])"}
"""Where numbers end. The model goes on as it likes after a number, and is stopped there: one that
may only end its turn or add digits would often add digits."""


def only_form(forms: Mapping[str, Any]) -> str | None:
    """The name of the form that is given (not None); None if there is none.

    Raises:
        RequestError: there are several.
    """
    given = [name for name, value in forms.items() if value is not None]
    if len(given) > 1:
        raise RequestError(f"{' and '.join(given)} exclude each other; give one", param=given[1])
    return given[0] if given else None


def make_constraint(form: str, value: Any) -> Constraint:
    """The runtime's constraint for ``json_schema`` (a dict, JSON text or a pydantic model class),
    ``dtype`` (int, float, bool, str), ``regex`` or ``ebnf``.

    Raises:
        RequestError: ``value`` is malformed.
    """
    match form:
        case "json_schema":
            return Constraint(kind="json_schema", text=schema_text(value))
        case "dtype":
            return Constraint(kind="regex", text=_dtype_regex(value))
        case "regex":
            return Constraint(kind="regex", text=_nonempty("regex", value))
        case "ebnf":
            return Constraint(kind="ebnf", text=_nonempty("ebnf", value))
    raise RequestError(f"{form} is no form of constraint", param=form)


def schema_text(schema: Any) -> str:
    """A JSON schema as JSON text; property order is kept, since it is the order of the output."""
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    try:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
        if isinstance(parsed, dict):
            return json.dumps(parsed)
    except (TypeError, ValueError) as error:
        raise RequestError(f"json_schema is not JSON: {error}", param="json_schema") from None
    raise RequestError(
        "json_schema must be a JSON object: a dict, its JSON text or a pydantic model class, "
        f"not {type(parsed).__name__}",
        param="json_schema",
    )


def _dtype_regex(dtype: type) -> str:
    try:
        return DTYPE_REGEX[dtype]
    except (KeyError, TypeError):
        raise RequestError(
            f"dtype must be int, float, bool or str, not {dtype!r}", param="dtype"
        ) from None


def _nonempty(name: str, text: str) -> str:
    if not isinstance(text, str) or not text:
        raise RequestError(f"{name} must be a string that is not empty", param=name)
    return text
