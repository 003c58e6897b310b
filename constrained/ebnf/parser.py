"""GBNF text to rules.

    root  ::= greeting " " name{1,3}   # comment
    name  ::= [A-Z] [a-z]+ | "Dr. " name

A rule ends where the next ``name ::=`` begins, so its alternatives may stand on lines of their
own. Literals and classes take the escapes of the regexes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from phloem.constrained.fixpoint import least
from phloem.constrained.limits import DEFAULT_LIMITS, Limits
from phloem.constrained.regex.charset import ANY, COMMON, read_class
from phloem.constrained.regex.escapes import read_escape
from phloem.constrained.regex.quantifier import read_quantifier
from phloem.constrained.regex.render import literal
from phloem.constrained.regex.scanner import Scanner
from phloem.constrained.regex.tree import Alt, Chars, Node, Ref, Repeat, Seq, children

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HEAD = re.compile(rf"({_NAME.pattern})[ \t\r\n]*::=")

START = "root"


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, Node]:
    """Rules by name, `START` among them; every `Ref` names one of them.

    Raises:
        GrammarError: with line and character of what is wrong.
    """
    scanner = Scanner(text, "ebnf")
    rules = _Parser(scanner, limits).parse()
    if START not in rules:
        scanner.fail(f"no rule is named {START!r}", at=0)
    for node in rules.values():
        _check_references(node, rules, scanner)
    _check_finite(rules, scanner)
    return rules


def references(node: Node) -> Iterator[Ref]:
    """The rules that ``node`` mentions."""
    if isinstance(node, Ref):
        yield node
    for child in children(node):
        yield from references(child)


def _check_references(node: Node, rules: dict[str, Node], scanner: Scanner) -> None:
    for ref in references(node):
        if ref.name not in rules:
            scanner.fail(f"the rule {ref.name!r} is not defined", at=ref.position)


def _check_finite(rules: dict[str, Node], scanner: Scanner) -> None:
    """Refuse a grammar that no finite text satisfies: ``root ::= "a" root``."""
    needs = {name: {ref.name for ref in references(node)} for name, node in rules.items()}
    if START not in least(needs, lambda name, finite: _is_finite(rules[name], finite)):
        scanner.fail(f"{START!r} never comes to an end", at=0)


def _is_finite(node: Node, finite: AbstractSet[str]) -> bool:
    match node:
        case Ref(name):
            return name in finite
        case Alt(options):
            return any(_is_finite(option, finite) for option in options)
        case Repeat(low=0):
            return True
        case _:
            return all(_is_finite(child, finite) for child in children(node))


class _Parser:
    """Recursive descent over one grammar."""

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self._scanner = scanner
        self._limits = limits
        self._depth = 0

    def parse(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        self._skip_space()
        while not self._scanner.at_end():
            name, start = self._head()
            if name in rules:
                self._scanner.fail(f"the rule {name!r} is defined twice", at=start)
            if len(rules) >= self._limits.rules:
                self._scanner.fail("too many rules", at=start, code="grammar_too_complex")
            rules[name] = self._alternatives()
        return rules

    def _head(self) -> tuple[str, int]:
        start = self._scanner.position
        head = _HEAD.match(self._scanner.text, start)
        if head is None:
            self._scanner.fail("expected a rule: name ::= ...")
        self._scanner.position = head.end()
        self._skip_space()
        return head[1], start

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        while self._scanner.accept("|"):
            self._skip_space()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while (item := self._item()) is not None:
            self._skip_space()
            bounds = read_quantifier(self._scanner, self._limits.repeats)
            items.append(item if bounds is None else Repeat(item, *bounds))
            self._skip_space()
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def _item(self) -> Node | None:
        scanner = self._scanner
        if scanner.accept('"'):
            return self._literal()
        if scanner.accept("["):
            return read_class(scanner, COMMON)
        if scanner.accept("("):
            return self._group()
        if scanner.accept("."):
            return ANY
        name = _NAME.match(scanner.text, scanner.position)
        if name is None or _HEAD.match(scanner.text, scanner.position):
            return None
        position = scanner.position
        scanner.position = name.end()
        return Ref(name[0], position)

    def _literal(self) -> Node:
        scanner = self._scanner
        start = scanner.position - 1
        chars: list[Node] = []
        while not scanner.accept('"'):
            if scanner.at_end() or scanner.peek() == "\n":
                scanner.fail("this literal is not closed", at=start)
            char = read_escape(scanner) if scanner.accept("\\") else scanner.take()
            chars.append(Chars(literal(char)))
        return Seq(tuple(chars))

    def _group(self) -> Node:
        start = self._scanner.position - 1
        self._depth += 1
        if self._depth > self._limits.depth:
            self._scanner.fail("groups are nested too deep", at=start, code="grammar_too_complex")
        self._skip_space()
        node = self._alternatives()
        if not self._scanner.accept(")"):
            self._scanner.fail("this group is not closed", at=start)
        self._depth -= 1
        return node

    def _skip_space(self) -> None:
        space = _SPACE.match(self._scanner.text, self._scanner.position)
        if space is not None:
            self._scanner.position = space.end()
