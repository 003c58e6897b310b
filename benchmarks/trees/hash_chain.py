"""The plain alternative to a tree: a dictionary of blocks by a chain of hashes, as vLLM keeps.

A block's hash covers its tokens and the hash of the block before it, so that one lookup a block
finds a prefix. Blocks are evicted least recently used first, the last of a sequence before those
that lead to it.
"""

from __future__ import annotations

from collections import OrderedDict

from trees.tree import PAGE, Tokens


class HashChain:
    name = "hash chain"

    def __init__(self, capacity: int) -> None:
        self._free = list(range(capacity))
        self._blocks: OrderedDict[int, int] = OrderedDict()

    def prepare(self, tokens: Tokens) -> list[int]:
        return tokens.tolist()

    def match(self, tokens: list[int]) -> int:
        found = []
        for key in hashes(tokens):
            if key not in self._blocks:
                break
            found.append(key)
        self._touch(found)
        return len(found) * PAGE

    def insert(self, tokens: list[int]) -> None:
        keys = hashes(tokens)
        for key in keys:
            if key not in self._blocks:
                self._blocks[key] = self._free.pop()
        self._touch(keys)

    def _touch(self, keys: list[int]) -> None:
        for key in reversed(keys):
            self._blocks.move_to_end(key)

    def evict(self, pages: int) -> None:
        for _ in range(min(pages, len(self._blocks))):
            _, page = self._blocks.popitem(last=False)
            self._free.append(page)


def hashes(tokens: list[int]) -> list[int]:
    found, parent = [], 0
    for at in range(0, len(tokens), PAGE):
        parent = hash((parent, *tokens[at : at + PAGE]))
        found.append(parent)
    return found
