"""``format``: which ones the engine enforces, and what it leaves open in some of them."""

from __future__ import annotations

from phloem.constrained.json_schema.keywords import Schema

ENFORCED_FORMATS = frozenset(
    {
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
        "uri",
    }
)

_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP_YEAR = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])"  # divisible by 4, not by 100
    "|(?:0[48]|[2468][048]|[13579][26])00)"  # divisible by 400
)
_REAL_DAY = (
    f"{_YEAR}-(?:0[13-9]|1[0-2])-[0-9]{{2}}|{_YEAR}-02-(?:[01][0-9]|2[0-8])|{_LEAP_YEAR}-02-29"
)
_NO_LEAP_SECOND = "[0-9]{2}:[0-9]{2}:[0-5]"

_LABEL = "(?:[^.]{1,2}|[^.]{3}|[^.]{2}[^.-][^.]*|[^.]{3}[^.-][^.]*)"

_TIGHTER: dict[str, Schema] = {
    # 29 February in leap years only; no year 0, which calendars lack.
    "date": {"pattern": f"^(?:{_REAL_DAY})$"},
    # No second 60: it is valid in the last minute of a day in UTC alone.
    "time": {"pattern": f"^{_NO_LEAP_SECOND}"},
    "date-time": {"pattern": f"^(?:{_REAL_DAY})[tT]{_NO_LEAP_SECOND}"},
    # The length as a whole; no "--" third and fourth, which is for checked A-labels ("xn--").
    "hostname": {"pattern": rf"^{_LABEL}(?:\.{_LABEL})*$", "maxLength": 253},
}
"""What the engine's own patterns leave open, to be intersected with them."""


def enforce(pointer: str, schema: Schema) -> list[str]:
    """Rewrite ``format`` in place to what holds exactly; a warning if it is dropped."""
    warnings = drop_unknown(pointer, schema)
    name = schema.get("format")
    if name in _TIGHTER:
        schema["allOf"] = [*schema.get("allOf", []), _TIGHTER[name]]
    return warnings


def drop_unknown(pointer: str, schema: Schema) -> list[str]:
    """Drop a ``format`` that is not enforced, in place, with a warning.

    The standard makes an unknown ``format`` an annotation, so leaving it out is exact.
    """
    name = schema.get("format")
    if name is None or name in ENFORCED_FORMATS:
        return []
    del schema["format"]
    return [f"{pointer}: the format {name!r} is not enforced"]
