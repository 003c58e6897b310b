"""Follows a JSON text byte by byte, and remembers the items and names that must differ."""

from __future__ import annotations

import json
import re
from enum import Enum, auto

from phloem.constrained.guards.frame import Frame
from phloem.constrained.guards.outline import Place
from phloem.constrained.guards.stock import Outlook

_IN_STRING = re.compile(rb'[^"\\]*')
_IN_SCALAR = re.compile(rb'[^ \t\n\r,:"\[\]{}]+')
_LITERALS = {ord("t"): len("true"), ord("f"): len("false"), ord("n"): len("null")}


class Mode(Enum):
    """What comes next, white space apart."""

    VALUE = auto()
    """A value, or the end of an empty array; also the colon before a member's value."""
    KEY = auto()
    """A key, or the end of an empty object."""
    STRING = auto()
    """More of a string."""
    SCALAR = auto()
    """More of a number or literal, or what follows the number."""
    AFTER = auto()
    """What follows a value."""


class JsonTracker:
    """Where a JSON text stands. It must be JSON: only what its places ask for is checked.

    What is kept of it, without white space, begins with the item at hand of the outermost watched
    array.
    """

    __slots__ = ("_escaped", "_in_key", "_key", "_letters", "_root", "frames", "mode", "text")

    def __init__(self, root: Place | None) -> None:
        self._root = root
        self.frames: list[Frame] = []
        self.mode = Mode.VALUE
        self.text = b""
        self._key = b""
        self._in_key = False
        self._escaped = False
        self._letters = 0

    def copy(self) -> JsonTracker:
        """An independent copy."""
        copy = JsonTracker.__new__(JsonTracker)
        copy._root = self._root
        copy.frames = self.frames.copy()
        copy.mode = self.mode
        copy.text = self.text
        copy._key = self._key
        copy._in_key = self._in_key
        copy._escaped = self._escaped
        copy._letters = self._letters
        return copy

    def feed(self, data: bytes) -> bool:
        """Take ``data``. False if a check fails on the way; the tracker is then spoilt."""
        position: int | None = 0
        while position is not None and position < len(data):
            step = self._string if self.mode is Mode.STRING else self._outside
            position = step(data, position)
        return position is not None

    def outlook(self) -> Outlook:
        """Whether the items at hand can still become new ones."""
        outlooks = {
            frame.stock.outlook(self.text[frame.start :], frame.keys)
            for frame in self.frames
            if frame.stock is not None and frame.rivals(self.text)
        }
        worst_first = (Outlook.DEAD, Outlook.UNCLEAR)
        return next((outlook for outlook in worst_first if outlook in outlooks), Outlook.OPEN)

    def _string(self, data: bytes, position: int) -> int | None:
        if self._escaped or data[position] == ord("\\"):
            self._escaped = not self._escaped
            end = position + 1
        elif data[position] == ord('"'):
            self._keep(b'"')
            return self._end_string(position + 1)
        else:
            run = _IN_STRING.match(data, position)
            end = run.end() if run else position
        self._keep(data[position:end])
        return end

    def _end_string(self, position: int) -> int | None:
        if not self._in_key:
            return self._end_value(position)
        self._in_key = False
        self.mode = Mode.VALUE
        frame = self.frames[-1]
        if frame.counted:
            name = json.loads(self._key)
            if name in frame.keys:
                return None
            self.frames[-1] = frame._replace(keys=frame.keys | {name})
        return position

    def _outside(self, data: bytes, position: int) -> int | None:
        byte = data[position : position + 1]
        if self.mode is Mode.SCALAR and not self._letters and byte in b" \t\n\r,]}":
            return self._end_value(position)  # a number, which its follower ends
        match byte:
            case b" " | b"\t" | b"\n" | b"\r":
                pass
            case b'"':
                self._begin_string()
            case b"[" | b"{":
                self._open(byte)
            case b"]" | b"}":
                return self._close(byte, position + 1)
            case b",":
                return self._next(position + 1)
            case b":":
                self._keep(byte)
            case _:
                return self._scalar(data, position)
        return position + 1

    def _begin_string(self) -> None:
        self._in_key = self.mode is Mode.KEY
        self.mode = Mode.STRING
        self._key = b""
        self._keep(b'"')

    def _open(self, bracket: bytes) -> None:
        place = self._place_of_value()
        self._keep(bracket)
        frame = Frame(place, is_array=bracket == b"[")
        self.frames.append(frame)
        self._begin_item(frame)
        self.mode = Mode.VALUE if frame.is_array else Mode.KEY

    def _close(self, bracket: bytes, position: int) -> int | None:
        frame = self.frames[-1]
        members = 0 if self.mode is Mode.KEY else frame.before + 1
        if members < frame.bounds[0]:
            return None
        self._keep(bracket)
        self.frames.pop()
        return self._end_value(position)

    def _next(self, position: int) -> int | None:
        """Over the comma."""
        frame = self.frames[-1]
        if frame.before + 1 >= frame.bounds[1]:
            return None
        self._keep(b",")
        self._begin_item(frame._replace(before=frame.before + 1))
        self.mode = Mode.VALUE if frame.is_array else Mode.KEY
        return position

    def _begin_item(self, frame: Frame) -> None:
        self.frames[-1] = frame._replace(start=len(self.text)) if frame.stock is not None else frame

    def _scalar(self, data: bytes, position: int) -> int | None:
        run = _IN_SCALAR.match(data, position)
        end = run.end() if run else position + 1
        if self.mode is not Mode.SCALAR:
            self.mode = Mode.SCALAR
            self._letters = _LITERALS.get(data[position], 0)
        self._keep(data[position:end])
        if self._letters:
            self._letters -= end - position
            return end if self._letters else self._end_value(end)
        return end

    def _end_value(self, position: int) -> int | None:
        self.mode = Mode.AFTER
        frame = self.frames[-1] if self.frames else None
        if frame is not None and frame.stock is not None:
            finished = frame.with_item(self.text[frame.start :], frame.stock)
            if finished is None:
                return None
            self.frames[-1] = finished
        if not any(frame.start is not None for frame in self.frames):
            self.text = b""
        return position

    def _keep(self, piece: bytes) -> None:
        if self._in_key:
            self._key += piece
        if any(frame.start is not None for frame in self.frames):
            self.text += piece

    def _place_of_value(self) -> Place | None:
        if not self.frames:
            return self._root
        frame = self.frames[-1]
        if frame.place is None:
            return None
        if frame.is_array:
            return frame.place.item(frame.before)
        return frame.place.member(json.loads(self._key))
