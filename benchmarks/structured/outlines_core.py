"""outlines-core: a schema becomes a regex, the regex an index of all its states' tokens."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

from outlines_core import Guide, Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

from structured import mask
from structured.engine import Refused, Tokens


def load(tokens: Tokens) -> Outlines:
    return Outlines(tokens)


class Outlines:
    def __init__(self, tokens: Tokens) -> None:
        by_bytes: dict[bytes, list[int]] = {}
        for token, data in enumerate(tokens.token_bytes):
            if data:
                by_bytes.setdefault(data, []).append(token)
        self._size = tokens.size
        self._vocabulary = Vocabulary(tokens.eos_ids[0], by_bytes)
        self.description = f"outlines-core {version('outlines-core')}"

    def compile(self, schema: Any) -> OutlinesGrammar:
        try:
            regex = build_regex_from_schema(json.dumps(schema, ensure_ascii=False))
            return OutlinesGrammar(Index(regex, self._vocabulary), self._size)
        except Exception as error:  # of no common type
            reason = re.sub(r"[\"'`({\[].*", "", str(error).strip().partition("\n")[0])
            raise Refused(reason[:70] or type(error).__name__, str(error)[:300]) from error


class OutlinesGrammar:
    warnings = ()

    def __init__(self, index: Index, size: int) -> None:
        self._index = index
        self._size = size

    def walk(self) -> OutlinesWalk:
        return OutlinesWalk(self._index, self._size)


class OutlinesWalk:
    def __init__(self, index: Index, size: int) -> None:
        self._index = index
        self._guide = Guide(index)
        self._words = mask.allocate(size)

    @property
    def accepting(self) -> bool:
        return bool(self._index.is_final_state(self._guide.get_state()))

    def fill(self) -> None:
        self._guide.write_mask_into(self._words.ctypes.data, self._words.size, 4)

    def offers(self, token: int) -> bool:
        return mask.has(self._words, token)

    def accept(self, token: int) -> bool:
        if not self._guide.accepts_tokens([token]):
            return False
        self._guide.advance(token, return_tokens=False)
        return True
