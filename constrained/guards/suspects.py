"""The tokens of a mask that a guard must try, out of the many that it need not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from phloem.constrained.bitmask import Row, few, pack
from phloem.constrained.guards.equality import key_of
from phloem.constrained.guards.frame import NO_BOUNDS, Frame
from phloem.constrained.guards.token_classes import SPACE, Spelling, TokenClasses
from phloem.constrained.guards.tracker import JsonTracker, Mode

_LONGEST_TOKEN = 64
"""Bytes; of longer tokens the guard may see too late that they lead to a dead end."""


def suspects(
    row: Row, tracker: JsonTracker, classes: TokenClasses, index: Spelling
) -> Collection[list[int]]:
    """Tokens of ``row``, among them all that may end an item twice or lead to a dead end.

    Those that come to the same stand together.
    """
    armed = [frame for frame in tracker.frames if frame.keys or frame.bounds != NO_BOUNDS]
    risky = [frame for frame in tracker.frames if frame.may_run_out(tracker.text)]
    if not armed and not risky and not np.any(row & classes.repeating):
        return ()
    found = set(_enders(row, tracker, armed, classes))
    if risky:
        along = pack(_along(tracker, risky, index), classes.vocabulary.size)
        found.update(few(row & (along | _leaders(tracker, classes))))
    return _grouped(found, tracker.mode, classes)


def _grouped(tokens: Iterable[int], mode: Mode, classes: TokenClasses) -> Collection[list[int]]:
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for token in tokens:
        data = classes.vocabulary.token_bytes[token]
        groups[data if mode is Mode.STRING else _stripped(data, mode)].append(token)
    return groups.values()


def _stripped(data: bytes, mode: Mode) -> bytes:
    """``data`` without the white space that makes no difference."""
    ends_number = mode is Mode.SCALAR and data[0] in SPACE
    bare = data.lstrip(SPACE) if b'"' in data else data.strip(SPACE)
    return b" " + bare if ends_number else bare


def _enders(
    row: Row, tracker: JsonTracker, armed: list[Frame], classes: TokenClasses
) -> Iterator[int]:
    """Those that may end an item that is there already, or two that are the same."""
    ending = row & _mode_class(tracker, classes)
    yield from few(ending & classes.repeating)
    if not armed:
        return
    top = tracker.frames[-1]
    if armed != [top] or not top.is_array:
        inner = top.counted or top.stock is not None or top.bounds != NO_BOUNDS
        yield from few(ending if inner else ending & classes.closing)
    elif tracker.mode is not Mode.AFTER:
        yield from _repeating_one(ending, tracker, top, classes)


def _repeating_one(
    ending: Row, tracker: JsonTracker, frame: Frame, classes: TokenClasses
) -> Iterable[int]:
    """Those of ``ending`` that may repeat an item of ``frame``.

    Without escapes, strings are equal only if they are written alike.
    """
    begun = tracker.text[frame.start :]
    if tracker.mode is Mode.SCALAR:
        return few(ending & classes.lengthening if _is_new(begun, frame) else ending)
    tokens = few(ending)
    if frame.escaped or b"\\" in begun or begun[:1] not in (b"", b'"'):
        return tokens
    rests = tuple(rival[len(begun) :] for rival in frame.rivals(tracker.text))
    if not rests:
        return ()
    data_of = classes.vocabulary.token_bytes
    return (token for token in tokens if _may_repeat(data_of[token], begun, rests))


def _is_new(number: bytes, frame: Frame) -> bool:
    """Whether ``number``, if nothing follows, is none of the items of ``frame``."""
    try:
        return key_of(number) not in frame.keys
    except ValueError:
        return True  # it is no number yet


def _may_repeat(data: bytes, begun: bytes, rests: tuple[bytes, ...]) -> bool:
    if not begun:
        data = data.lstrip(SPACE)
        if data[:1] != b'"':
            return True
    return data.startswith(rests) or b"\\" in data


def _mode_class(tracker: JsonTracker, classes: TokenClasses) -> Row:
    """Those that may end a value, by what is being written."""
    match tracker.mode:
        case Mode.STRING:
            return classes.quoting
        case Mode.SCALAR:
            return classes.delimiting
        case Mode.AFTER:
            return classes.following
        case _:
            return classes.finishing


def _leaders(tracker: JsonTracker, classes: TokenClasses) -> Row:
    """Those that `_along` does not find: text that is kept in another form than written."""
    if tracker.mode is Mode.STRING:
        return classes.quoting
    return _mode_class(tracker, classes) | classes.spaced


def _along(tracker: JsonTracker, frames: list[Frame], index: Spelling) -> Iterator[int]:
    """Tokens that continue the text as an item before it goes on, one that may run out."""
    for frame in frames:
        begun = len(tracker.text) - (frame.start or 0)
        rests = {
            rival[begun : begun + _LONGEST_TOKEN]
            for rival in frame.rivals(tracker.text)
            if frame.stock is not None and frame.stock.may_run_out(rival)
        }
        for rest in rests:
            for end in range(1, len(rest) + 1):
                if not index.begins_token(rest[:end]):
                    break
                yield from index.spelling(rest[:end])
