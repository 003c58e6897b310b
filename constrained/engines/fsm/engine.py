"""The fsm engine: a state of the automaton is the state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from phloem.constrained import regex
from phloem.constrained.bitmask import Row
from phloem.constrained.engines.fsm.automaton import DEAD, Automaton
from phloem.constrained.engines.fsm.dfa import Dfa
from phloem.constrained.engines.fsm.grammar import FsmGrammar
from phloem.constrained.engines.fsm.nfa import Nfa
from phloem.constrained.engines.fsm.partition import partition
from phloem.constrained.engines.fsm.token_trie import TokenTrie
from phloem.constrained.engines.fsm.utf8 import letters
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.limits import Limits
from phloem.constrained.regex.tree import Node
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.state import Compiled

_NFA_STATES = 5
"""States written out, for each state of the finished automaton that is allowed."""


class FsmEngine:
    """Complete at compile time, within a budget of states; masks come when first asked for."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self._tokenizer = tokenizer
        self._limits = limits

    def compile(self, spec: GrammarSpec) -> Compiled:
        """See `Engine`."""
        tree = regex.whole(regex.parse(spec.text, limits=self._limits))
        automaton = build(tree, self._limits.automaton_states)
        grammar = FsmGrammar(automaton, self._trie, self._tokenizer)
        return Compiled(FsmState(grammar, [0]), grammar.nbytes)

    @cached_property
    def _trie(self) -> TokenTrie:
        return TokenTrie(self._tokenizer.vocabulary)


def build(tree: Node, most_states: int) -> Automaton:
    """The automaton of a regex matched whole.

    Raises:
        GrammarError: nothing matches it, or it takes more than ``most_states``.
    """
    nfa = Nfa(tree, most_states * _NFA_STATES)
    classes = partition(list(nfa.sets))
    return Automaton(Dfa(nfa, classes, most_states), letters(classes))


class FsmState:
    """A path of the automaton's states; the last is where the sequence stands."""

    __slots__ = ("_grammar", "_path")

    def __init__(self, grammar: FsmGrammar, path: list[int]) -> None:
        self._grammar = grammar
        self._path = path

    @property
    def length(self) -> int:
        return len(self._path) - 1

    @property
    def accepting(self) -> bool:
        return self._grammar.automaton.accepting(self._path[-1])

    @property
    def stopped(self) -> bool:
        here = self._path[-1]
        return self.accepting and bool((self._grammar.automaton.following(here) == DEAD).all())

    def fill(self, row: Row) -> None:
        np.copyto(row, self._grammar.mask(self._path[-1]))

    def valid_prefix(self, tokens: Sequence[int]) -> int:
        return len(self._walk(tokens))

    def advance(self, tokens: Sequence[int]) -> int:
        states = self._walk(tokens)
        self._path.extend(states)
        return len(states)

    def rollback(self, count: int) -> None:
        del self._path[len(self._path) - count :]

    def forced(self) -> list[int]:
        return self._grammar.forced(self._path[-1])

    def copy(self) -> FsmState:
        return FsmState(self._grammar, self._path.copy())

    def _walk(self, tokens: Sequence[int]) -> list[int]:
        states: list[int] = []
        here = self._path[-1]
        for token in tokens:
            here = self._grammar.automaton.step(here, self._grammar.token_bytes[token])
            if here == DEAD:
                break
            states.append(here)
        return states
