"""Escapes that stand for one character, the same in regexes and EBNF."""

from __future__ import annotations

from phloem.constrained.regex.scanner import Scanner

_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def read_escape(scanner: Scanner) -> str:
    """The character that an escape stands for; the backslash is already consumed.

    Escaped letters and digits without a meaning shared by all dialects are refused.
    """
    start = scanner.position - 1
    letter = scanner.take()
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter in _HEX_DIGITS:
        return _code_point(scanner, letter, start)
    if letter.isascii() and letter.isalnum():
        scanner.fail(f"'\\{letter}' is not supported", at=start)
    return letter


def _code_point(scanner: Scanner, letter: str, start: int) -> str:
    value = _hex(scanner, _HEX_DIGITS[letter], start)
    if 0xD800 <= value < 0xDC00 and scanner.accept("\\u"):
        low = _hex(scanner, 4, start)
        if 0xDC00 <= low < 0xE000:
            value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
    if 0xD800 <= value < 0xE000 or value > 0x10FFFF:
        scanner.fail(f"'\\{letter}' names no character (U+{value:04X})", at=start)
    return chr(value)


def _hex(scanner: Scanner, count: int, start: int) -> int:
    if scanner.accept("{"):
        end = scanner.text.find("}", scanner.position)
        digits = scanner.take(max(end - scanner.position, 0) if end >= 0 else 1)
        scanner.accept("}")
    else:
        digits = scanner.take(count)
    if not 0 < len(digits) <= 8 or not all(d in "0123456789abcdefABCDEF" for d in digits):
        scanner.fail("a hexadecimal escape needs hexadecimal digits", at=start)
    return int(digits, 16)
