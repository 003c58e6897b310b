"""Errors in the words of the API that a request came by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from phloem.runtime.errors import RequestError


@contextmanager
def api_terms(names: Mapping[str, str]) -> Iterator[None]:
    """Put the API's names of fields, by ours, into the RequestErrors of the ``with``'s body."""
    try:
        yield
    except RequestError as error:
        raise _renamed(error, names) from None


def _renamed(error: RequestError, names: Mapping[str, str]) -> RequestError:
    message = error.message
    for ours, theirs in names.items():
        message = message.replace(f"`{ours}`", f"`{theirs}`")
    param = None if error.param is None else names.get(error.param, error.param)
    return RequestError(message, param=param, code=error.code, pointer=error.pointer)
