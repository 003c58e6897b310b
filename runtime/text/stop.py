"""Find stop strings and regexes in text as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import thread_time
from typing import Any, Protocol

import regex

from phloem.runtime.errors import RequestError

MAX_STRINGS = 64
MAX_STRING_CHARS = 1024
MAX_REGEXES = 16
MAX_REGEX_CHARS = 1024
MAX_MATCH_CHARS = 512
"""A regex match may begin this far back at most: text further back is released."""
CONTEXT_CHARS = 64
"""Released text that look-behind and word boundaries of a regex may still see."""
SEARCH_SECONDS = 0.05
SECONDS_PER_CHAR = 0.0005
"""Each character earns its regexes time, and unused time is kept up to ``SEARCH_SECONDS``:
far more than ordinary ones need, while those that backtrack without end are found out."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """Text that may be shown, and the stop string or regex found, if one was."""

    text: str
    matched: str | None = None


class StopMatcher:
    """Releases text up to the first stop, and withholds only what may begin one.

    Text is read character by character, so the result does not depend on how it is cut into
    pushes. The stop that ends first wins; of several that end together, the one that begins
    first, then the one given first. A regex matches as soon as the text so far has a match.

    ``trim``: drop the stop itself from the released text.

    Raises (when built):
        RequestError: there are too many stops, or one is empty, too long or no regex.
    """

    def __init__(
        self, strings: Sequence[str] = (), regexes: Sequence[str] = (), *, trim: bool = True
    ) -> None:
        _check("stop", strings, MAX_STRINGS, MAX_STRING_CHARS)
        _check("stop_regex", regexes, MAX_REGEXES, MAX_REGEX_CHARS)
        self._scanners: list[_Scanner] = [_String(text) for text in strings]
        self._clock = _Clock()
        self._scanners += [_Regex(source, self._clock) for source in regexes]
        self._trim = trim
        self._withheld = ""
        self._matched: str | None = None

    def push(self, text: str) -> StopResult:
        """Take more text; after a stop, nothing more is released.

        Raises:
            RequestError: a regex took too long.
        """
        if not self._scanners:
            return StopResult(text)
        if self._matched is not None:
            return StopResult("", self._matched)
        pending = self._withheld + text
        for end in range(len(self._withheld) + 1, len(pending) + 1):
            found = self._advance(pending[end - 1])
            if found is not None:
                self._matched, length = found
                self._withheld = ""
                return StopResult(pending[: end - length if self._trim else end], self._matched)
        held = max(scanner.held for scanner in self._scanners)
        at = len(pending) - held
        self._withheld = pending[at:]
        return StopResult(pending[:at])

    def flush(self) -> str:
        """The withheld text, when no more comes."""
        text, self._withheld = self._withheld, ""
        return text

    def _advance(self, char: str) -> tuple[str, int] | None:
        """Feed every scanner; the stop with the longest match that ends here, and its length."""
        self._clock.earn()
        found: tuple[str, int] | None = None
        for scanner in self._scanners:
            length = scanner.advance(char)
            if length is not None and (found is None or length > found[1]):
                found = scanner.source, length
        return found


class _Scanner(Protocol):
    """Watches for one stop.

    Attributes:
        source: the stop as given.
        held: how many of the last characters may begin it.
    """

    source: str
    held: int

    def advance(self, char: str) -> int | None:
        """Take one character; the length of the match that it completes, if it does."""


class _String:
    """Knuth, Morris and Pratt (1977): ``held`` is the longest head that the text ends with."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.held = 0
        self._fallback = _fallbacks(source)

    def advance(self, char: str) -> int | None:
        held = self.held
        while held and self.source[held] != char:
            held = self._fallback[held]
        self.held = held + 1 if self.source[held] == char else 0
        return self.held if self.held == len(self.source) else None


@lru_cache(maxsize=256)
def _fallbacks(source: str) -> tuple[int, ...]:
    """Entry n: the longest head of ``source[:n]``, other than itself, that it ends with."""
    fallback = [0, 0]
    for char, head in zip(source[1:], range(1, len(source)), strict=True):
        held = fallback[head]
        while held and source[held] != char:
            held = fallback[held]
        fallback.append(held + 1 if source[held] == char else 0)
    return tuple(fallback)


class _Regex:
    """Keeps the text from where a match may still begin, and a little before it.

    Invariant: no match begins before the last ``held`` characters of ``_text``.
    """

    def __init__(self, source: str, clock: _Clock) -> None:
        self.source = source
        self.held = 0
        self._clock = clock
        self._pattern = _compile(source)
        self._text = ""

    def advance(self, char: str) -> int | None:
        self._text += char
        at = len(self._text) - self.held - 1
        match = self._search(at, partial=True)
        self.held = 0
        if match is not None and match.partial:
            # What may yet become a match can hide a match that begins later.
            self.held = min(len(self._text) - match.start(), MAX_MATCH_CHARS)
            match = self._search(match.start(), partial=False)
        if match is not None:
            return len(self._text) - int(match.start())
        self._text = self._text[-(self.held + CONTEXT_CHARS) :]
        return None

    def _search(self, at: int, *, partial: bool) -> Any:
        try:
            with self._clock:
                return self._pattern.search(self._text, at, partial=partial, timeout=SEARCH_SECONDS)
        except TimeoutError as error:
            raise RequestError(
                f"stop_regex {self.source!r} takes too long on this text", param="stop_regex"
            ) from error


class _Clock:
    """The time that a request's regexes may still take, of this thread's processor time.

    As a context, it takes off what the block took.

    Raises (when left):
        TimeoutError: more than there was.
    """

    def __init__(self) -> None:
        self._left = SEARCH_SECONDS
        self._started = 0.0

    def earn(self) -> None:
        self._left = min(SEARCH_SECONDS, self._left + SECONDS_PER_CHAR)

    def __enter__(self) -> None:
        self._started = thread_time()

    def __exit__(self, *_: object) -> None:
        self._left -= thread_time() - self._started
        if self._left < 0:
            raise TimeoutError


@lru_cache(maxsize=256)
def _compile(source: str) -> Any:
    """The compiled regex, checked not to match everything."""
    try:
        pattern = regex.compile(source)
        empty = pattern.search("", timeout=SEARCH_SECONDS)
    except (regex.error, RecursionError, MemoryError, OverflowError, TimeoutError) as error:
        raise RequestError(f"stop_regex {source!r}: {error}", param="stop_regex") from error
    if empty is not None:
        raise RequestError(f"stop_regex {source!r} matches empty text", param="stop_regex")
    return pattern


def _check(param: str, stops: Sequence[str], most: int, longest: int) -> None:
    if len(stops) > most:
        raise RequestError(f"{param} has {len(stops)} entries, at most {most}", param=param)
    for stop in stops:
        if not 0 < len(stop) <= longest:
            raise RequestError(
                f"{param} has an entry of {len(stop)} characters, not 1 to {longest}", param=param
            )
