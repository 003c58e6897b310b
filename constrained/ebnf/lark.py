"""Rules to the Lark dialect of llguidance.

llguidance splits a grammar into rules (Earley) and terminals (regexes), and its lexer takes the
longest terminal. Taken literally, ``root ::= name "x"; name ::= [a-z]+`` could then never reach
its ``"x"``. Whatever is regular is therefore folded into as few and as large terminals as
possible: a grammar without recursion becomes one regex, which has no such borders, and in a
recursive one borders remain only next to the recursion.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from itertools import groupby

from phloem.constrained.ebnf.parser import START, references
from phloem.constrained.errors import GrammarError
from phloem.constrained.fixpoint import least
from phloem.constrained.regex.render import quantifier, render
from phloem.constrained.regex.tree import Alt, Node, Ref, Repeat, Seq, children

_LARGEST_RULE = 100_000


def to_lark(rules: Mapping[str, Node]) -> str:
    """The grammar text for ``rules``, which may use any names.

    Raises:
        GrammarError: a rule grows too large.
    """
    return _Writer(rules).write()


def regular_rules(rules: Mapping[str, Node]) -> KeysView[str]:
    """Names of the rules from which no recursion is reachable, each after those it mentions."""
    needs = {name: {ref.name for ref in references(node)} for name, node in rules.items()}
    return least(needs, lambda name, regular: needs[name] <= regular)


def _check_size(rules: Mapping[str, Node], regular: KeysView[str]) -> None:
    """Refuse rules that, written out without references, are larger than any engine takes."""
    sizes: dict[str, int] = {}
    for name in regular:
        sizes[name] = _size(rules[name], sizes)
        if sizes[name] > _LARGEST_RULE:
            raise GrammarError(
                f"ebnf: the rule {name!r} is too large once its references are written out",
                code="grammar_too_complex",
            )


def _size(node: Node, sizes: Mapping[str, int]) -> int:
    if isinstance(node, Ref):
        return sizes[node.name]
    return 1 + sum(_size(child, sizes) for child in children(node))


class _Writer:
    """Names rules r0, r1 ... and terminals T0, T1 ..., so that no given name can clash."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._rules = rules
        self._regular = regular_rules(rules)
        _check_size(rules, self._regular)
        self._names = {
            name: f"{'T' if name in self._regular else 'r'}{index}"
            for index, name in enumerate(rules)
        }
        self._lines: list[str] = []

    def write(self) -> str:
        self._lines.append(f"start: {self._names[START]}")
        for name, node in self._rules.items():
            body = self._terminal(node) if name in self._regular else self._rule(node)
            self._lines.append(f"{self._names[name]}: {body}")
        return "\n".join(self._lines) + "\n"

    def _terminal(self, node: Node) -> str:
        """The right-hand side of a terminal; ``node`` is regular."""
        if not any(references(node)):
            return f"/(?:{render(node)})/"
        match node:
            case Seq(items):
                return " ".join(f"({self._terminal(item)})" for item in items)
            case Alt(options):
                return " | ".join(f"({self._terminal(option)})" for option in options)
            case Repeat(item, low, high):
                return f"({self._terminal(item)}){quantifier(low, high)}"
            case Ref(name):
                return self._names[name]
        raise AssertionError(f"EBNF has no {node}")

    def _rule(self, node: Node) -> str:
        """The right-hand side of a rule; its regular parts become terminals of their own."""
        if self._is_regular(node):
            return self._hoist(node)
        match node:
            case Seq(items):
                runs = groupby(items, self._is_regular)
                return " ".join(self._run(Seq(tuple(run)), regular) for regular, run in runs)
            case Alt(options):
                return " | ".join(f"({self._rule(option)})" for option in self._merged(options))
            case Repeat(item, low, high):
                return f"({self._rule(item)}){quantifier(low, high)}"
            case Ref(name):
                return self._names[name]
        raise AssertionError(f"EBNF has no {node}")

    def _run(self, run: Seq, regular: bool) -> str:
        if regular:
            return self._hoist(run)
        return " ".join(f"({self._rule(item)})" for item in run.items)

    def _merged(self, options: tuple[Node, ...]) -> list[Node]:
        regular = tuple(option for option in options if self._is_regular(option))
        others = [option for option in options if not self._is_regular(option)]
        return [Alt(regular), *others] if regular else others

    def _hoist(self, node: Node) -> str:
        name = f"H{len(self._lines)}"
        self._lines.append(f"{name}: {self._terminal(node)}")
        return name

    def _is_regular(self, node: Node) -> bool:
        return all(ref.name in self._regular for ref in references(node))
