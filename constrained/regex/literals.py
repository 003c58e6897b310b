"""A regex for every text but a few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phloem.constrained.regex.render import literal

_DEEPEST = 30
"""Groups inside each other; the engine reads about eighty."""

Trie = dict[str, "Trie"]
_END = ""


def none_of_literals(texts: Iterable[str]) -> str:
    """A regex, anchored on both sides, for the texts that are none of ``texts``.

    It is about as long as they are: a trie of them, left at some character or ended too early or
    too late.
    """
    root: Trie = {}
    for text in texts:
        node = root
        for char in text:
            node = node.setdefault(char, {})
        node[_END] = {}
    todo = [("", root)]
    parts: list[str] = []
    for prefix, node in todo:
        parts.append(prefix + _group(node, prefix, todo, 0))
    return f"^(?:{'|'.join(parts)})$"


def _group(node: Trie, prefix: str, todo: list[tuple[str, Trie]], depth: int) -> str:
    """What may follow ``prefix``; what lies too deep goes to ``todo`` with its own prefix."""
    return f"(?:{'|'.join(_options(node, prefix, todo, depth))})"


def _options(node: Trie, prefix: str, todo: list[tuple[str, Trie]], depth: int) -> Iterator[str]:
    chars = [char for char in node if char != _END]
    if _END not in node:
        yield ""
    yield f"[^{''.join(map(literal, chars))}](?s:.)*" if chars else "(?s:.)+"
    for char in chars:
        longer = prefix + literal(char)
        if depth < _DEEPEST:
            yield literal(char) + _group(node[char], longer, todo, depth + 1)
        else:
            todo.append((longer, node[char]))
