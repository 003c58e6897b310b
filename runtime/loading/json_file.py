"""Read the JSON files of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from phloem.runtime.errors import ModelError


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``.

    Raises:
        ModelError: the file is missing or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no JSON object")
    return content
