"""From a request's body to a typed struct, with errors that name the field.

A field that is null counts as absent. Fields that the API does not have are of three kinds:
those that would change what is generated are refused, those that never do are dropped, and all
others are reported to the client in the header ``x-phloem-ignored``.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec
from fastapi import Request

from phloem.runtime.errors import RequestError

T = TypeVar("T", bound=msgspec.Struct)

IGNORED_HEADER = "x-phloem-ignored"
MAX_IGNORED_HEADER = 1024

# msgspec's messages: "PROBLEM - at `$.PATH`", where the field itself may be in the problem.
LOCATED = re.compile(r"(?P<problem>.*?) - at (?:`key` in )?`\$\.?(?P<path>.*)`", re.DOTALL)
NAMED = re.compile(r"Object (?P<problem>.*) field `(?P<name>.*)`", re.DOTALL)
PROBLEM_OF = {"missing required": "is required", "contains unknown": "is not a known field"}

_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """A decoded body, the names of fields that had no effect, and when the request came."""

    value: T
    ignored: list[str]
    arrived: float

    @property
    def headers(self) -> dict[str, str]:
        if not self.ignored:
            return {}
        names = ",".join(quote(name) for name in self.ignored)
        return {IGNORED_HEADER: names[:MAX_IGNORED_HEADER]}


class Schema(Generic[T]):
    """The body of one route.

    Attributes:
        refused: fields not in ``kind`` that would change the output; an error unless empty.
        harmless: fields not in ``kind`` that never change the output.
    """

    def __init__(
        self,
        kind: type[T],
        refused: frozenset[str] = frozenset(),
        harmless: frozenset[str] = frozenset(),
    ) -> None:
        self.kind = kind
        self.refused = refused
        self.harmless = harmless
        self._decoder = msgspec.json.Decoder(kind)
        self._known = frozenset(kind.__struct_encode_fields__)

    async def read(self, request: Request) -> Decoded[T]:
        """Decode the request's body.

        Raises:
            RequestError: it is not UTF-8 JSON of this shape, or has a refused field.
        """
        arrived = time.perf_counter()
        body = await request.body()
        value, ignored = self.decode(body)
        return Decoded(value, ignored, arrived)

    def decode(self, body: bytes) -> tuple[T, list[str]]:
        try:
            body.decode()
            fields = _raw_fields.decode(body)
            unknown = [
                (name, msgspec.json.decode(fields[name]))
                for name in fields
                if name not in self._known and name not in self.harmless
            ]
            self._refuse(unknown)
            value = self._decoder.decode(body)
        except (ValueError, RecursionError) as error:
            raise decode_error(error) from None
        ignored = (name for name, given in unknown if given is not None)
        return value, [name for name in ignored if name not in self.refused]

    def _refuse(self, unknown: list[tuple[str, Any]]) -> None:
        for name, given in unknown:
            if name in self.refused and given:
                raise unsupported(name)


def unsupported(name: str) -> RequestError:
    return RequestError(f"`{name}` is not supported", param=name, code="unsupported_field")


def decode_error(error: Exception) -> RequestError:
    """What is wrong with a body that cannot be decoded."""
    if isinstance(error, msgspec.ValidationError):
        return field_error(error)
    if isinstance(error, UnicodeDecodeError):
        problem = "is not valid UTF-8"
    elif isinstance(error, RecursionError):
        problem = "is nested too deeply"
    else:
        problem = f"is not valid JSON: {error}"
    return RequestError(f"the body {problem}", code="invalid_json")


def field_error(error: msgspec.ValidationError, within: str = "") -> RequestError:
    """What is wrong with which field; ``within`` is the path of what was decoded."""
    problem, path = str(error), ""
    if located := LOCATED.fullmatch(problem):
        problem, path = located["problem"], located["path"]
    if named := NAMED.fullmatch(problem):
        path = join(path, named["name"])
        problem = PROBLEM_OF[named["problem"]]
    else:
        problem = problem[0].lower() + problem[1:]
    param = join(within, path)
    where = f"`{param}`" if param else "the body"
    return RequestError(f"{where}: {problem}", param=param or None, code="invalid_type")


def join(*path: str) -> str:
    return ".".join(part for part in path if part)
