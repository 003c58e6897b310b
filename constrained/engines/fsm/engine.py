"""The fsm engine: from a regex to an automaton over bytes."""

from __future__ import annotations

from functools import cached_property

from phloem.constrained import regex
from phloem.constrained.engines.fsm.automaton import Automaton
from phloem.constrained.engines.fsm.dfa import Dfa
from phloem.constrained.engines.fsm.grammar import FsmGrammar
from phloem.constrained.engines.fsm.nfa import Nfa
from phloem.constrained.engines.fsm.partition import partition
from phloem.constrained.engines.fsm.token_trie import TokenTrie
from phloem.constrained.engines.fsm.utf8 import letters
from phloem.constrained.engines.path_state import PathState
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
        return Compiled(PathState(grammar, [0]), grammar.nbytes)

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
