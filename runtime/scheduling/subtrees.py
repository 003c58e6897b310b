"""Waiting sequences in the order of a walk through the radix tree, fullest subtrees first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from phloem.radix_cache import Node
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.sequence import Sequence

Place = tuple[tuple[int, int], ...]


def by_subtree(memory: SequenceMemory, sequences: Iterable[Sequence]) -> list[Sequence]:
    """Depth first, the child with most waiting sequences below it first (SGLang's dfs-weight).

    Each subtree's pages are then used by all that want them before others need the room. Of one
    node, those that want more than it come before those that end there; these keep their order.
    """
    paths = {seq: path(memory, seq) for seq in sequences}
    weights = Counter(node for nodes in paths.values() for node in nodes)
    ranks = {node: (-weight, at) for at, (node, weight) in enumerate(weights.items())}
    return sorted(paths, key=lambda seq: place(paths[seq], ranks))


def path(memory: SequenceMemory, seq: Sequence) -> list[Node]:
    """The nodes of the sequence's cached prefix, from the root."""
    nodes: list[Node] = []
    node = memory.cached(seq).node
    while node is not None:
        nodes.append(node)
        node = node.parent
    return nodes[::-1]


def place(nodes: list[Node], ranks: Mapping[Node, tuple[int, int]]) -> Place:
    """Sorts as the walk does; the end, of weight 0, comes behind all children."""
    return (*(ranks[node] for node in nodes), (0, 0))
