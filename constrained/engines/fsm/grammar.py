"""What is known of an automaton's states, found when first asked for and then shared."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from phloem.constrained import bitmask
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.fsm.automaton import DEAD, Automaton
from phloem.constrained.engines.fsm.token_trie import Flags, TokenTrie
from phloem.constrained.engines.tokenizer import Tokenizer

_MASK_BYTES = 8 * 1024 * 1024
"""Masks kept for a grammar."""
_EDGES = 4_096
_HORIZON = 96
"""Bytes of forced text looked at, to find its first token."""
_MOST_FORCED = 64


class FsmGrammar:
    """Masks and forced tokens by state: a `TokenAutomaton`. Thread-safe."""

    def __init__(self, automaton: Automaton, trie: TokenTrie, tokenizer: Tokenizer) -> None:
        self.automaton = automaton
        self.token_bytes = tokenizer.vocabulary.token_bytes
        self._text_ids = tokenizer.vocabulary.text_ids
        self._trie = trie
        self._tokenizer = tokenizer
        self._words = bitmask.words(tokenizer.vocabulary.size)
        self._masks = max(1, _MASK_BYTES // (4 * self._words))
        self.mask = lru_cache(self._masks)(self._mask)
        """State -> the mask to apply, read-only: of the forced token alone, if there is one."""
        self.forced_token = lru_cache(_EDGES)(self._forced_token)
        """State -> the token that must follow, as the tokenizer cuts the text; maybe None."""
        self._only_byte = lru_cache(_EDGES)(self._find_only_byte)

    @property
    def nbytes(self) -> int:
        """Estimated memory, with the caches full."""
        masks = min(self._masks, self.automaton.states)
        return self.automaton.nbytes + 4 * self._words * masks

    def accepts(self, state: int) -> bool:
        return self.automaton.accepting(state)

    def stops(self, state: int) -> bool:
        return self.accepts(state) and bool((self.automaton.following(state) == DEAD).all())

    def fill(self, state: int, row: Row) -> None:
        np.copyto(row, self.mask(state))

    def after(self, state: int, token: int) -> int | None:
        after = self.automaton.step(state, self.token_bytes[token])
        return None if after == DEAD else after

    def forced(self, state: int) -> list[int]:
        """The tokens that must follow one after the other."""
        tokens: list[int] = []
        while len(tokens) < _MOST_FORCED and (token := self.forced_token(state)) is not None:
            tokens.append(token)
            state = self.automaton.step(state, self.token_bytes[token])
        return tokens

    def _mask(self, state: int) -> Row:
        forced = self.forced_token(state)
        allowed = np.zeros(32 * self._words, np.bool_)
        if forced is None:
            allowed[: len(self.token_bytes)] = self._allowed(state)
        else:
            allowed[forced] = True
        row = np.packbits(allowed, bitorder="little").view(np.int32)
        row.flags.writeable = False
        return row

    def _allowed(self, state: int) -> Flags:
        return self._trie.allowed(self.automaton, state)

    def _forced_token(self, state: int) -> int | None:
        """The first token of the forced text, unless what follows that text could change it.

        Where a token can begin inside the text and reach beyond it, the tokenizer may cut the text
        there; and within white space at its end, since tokenizers look for what follows that. Up to
        each such place the text must begin with the same token as up to its end.
        """
        text, states = self._edge(state)
        solid = len(text.decode().rstrip().encode())
        ends = [
            place
            for place in range(len(text))
            if place >= solid or self._reaches_beyond(text, states, place)
        ]
        firsts = {self._first_token(text[: _boundary(text, end)]) for end in (*ends, len(text))}
        return firsts.pop() if len(firsts) == 1 else None

    def _edge(self, state: int) -> tuple[bytes, list[int]]:
        """The text that must follow, in whole characters, and the state before each byte of it."""
        text, states = bytearray(), list[int]()
        whole = 0
        while len(text) < _HORIZON and (byte := self._only_byte(state)) is not None:
            if self.automaton.between_characters(state):
                whole = len(text)
            elif not text:
                return b"", []
            text.append(byte)
            states.append(state)
            state = self.automaton.step(state, bytes([byte]))
        if self.automaton.between_characters(state):
            whole = len(text)
        return bytes(text[:whole]), states[:whole]

    def _reaches_beyond(self, text: bytes, states: list[int], place: int) -> bool:
        rest = len(text) - place
        if not self._tokenizer.index.begins_token(text[place:]):
            return False
        following = np.flatnonzero(self._allowed(states[place])).tolist()
        return any(len(self.token_bytes[token]) > rest for token in following)

    def _first_token(self, text: bytes) -> int | None:
        """The first token of ``text`` if it is a text token that spells its beginning."""
        token = next(iter(self._tokenizer.encode(text)), None) if text else None
        if token is None or token not in self._text_ids:
            return None
        return token if text.startswith(self.token_bytes[token]) else None

    def _find_only_byte(self, state: int) -> int | None:
        """The one byte that can follow; None if there are others, or the text may end."""
        if self.automaton.accepting(state):
            return None
        alive = np.flatnonzero(self.automaton.following(state) >= 0)
        return int(alive[0]) if len(alive) == 1 else None


def _boundary(text: bytes, place: int) -> int:
    """``place``, or the beginning of the character inside which it is."""
    while place < len(text) and 0x80 <= text[place] < 0xC0:
        place -= 1
    return place
