"""Least fixed points over a graph."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, KeysView, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def least(
    needs: Mapping[K, Collection[K]], holds: Callable[[K, AbstractSet[K]], bool]
) -> KeysView[K]:
    """The smallest set that has every key for which ``holds(key, set)``, in order of discovery.

    ``holds`` must not turn false as the set grows, and must look for ``needs[key]`` in it alone.
    """
    used_by: defaultdict[K, list[K]] = defaultdict(list)
    for key, needed in needs.items():
        for other in needed:
            used_by[other].append(key)
    found: dict[K, None] = {}
    todo = deque(reversed(list(needs)))  # what is needed mostly stands behind what needs it
    while todo:
        key = todo.popleft()
        if key not in found and holds(key, found.keys()):
            found[key] = None
            todo.extend(used_by[key])
    return found.keys()
