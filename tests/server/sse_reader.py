"""Read server-sent events as clients do."""

from __future__ import annotations

import json
from typing import Any


def events(text: str) -> list[Any]:
    """The events' JSON; the stream must end with one [DONE]."""
    parts = text.split("\n\n")
    assert parts.pop() == ""
    assert parts.pop() == "data: [DONE]"
    assert all(part.startswith("data: ") for part in parts)
    return [json.loads(part.removeprefix("data: ")) for part in parts]


def error_of(body: bytes) -> dict[str, Any]:
    """The error in a body, checked to have its shape."""
    error = json.loads(body)["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    assert error["message"] and isinstance(error["code"], str)
    assert "Traceback" not in error["message"]
    return dict(error)
