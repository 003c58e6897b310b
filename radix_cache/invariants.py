"""What must hold of a tree and its pool at any time between calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phloem.radix_cache.errors import InvariantError
from phloem.radix_cache.eviction import LeafHeap
from phloem.radix_cache.node import NO_PAGES, Node
from phloem.radix_cache.page_pool import PagePool, distinct


def require(holds: bool, subject: object, complaint: str) -> None:
    if not holds:
        raise InvariantError(f"{subject}: {complaint}")


def check_structure(roots: Mapping[str, Node], page_bytes: int) -> None:
    """Roots are in use; below them each node is well formed and well placed."""
    for namespace, root in roots.items():
        require(root.is_root and root.namespace == namespace, root, "is not this root")
        require(len(root.children) > 0, root, "should have been dropped when it became empty")
    stack = list(roots.values())
    while stack:
        node = stack.pop()
        check_children(node, page_bytes)
        stack.extend(node.children)


def check_children(node: Node, page_bytes: int) -> None:
    """Children are where their first page says; a lock on one is a lock on its parent."""
    require(node.children.in_order(), node, "its children are out of order")
    for page, child in node.children.items():
        require(child.run[:page_bytes] == page, child, "hangs under another page than its first")
        require(child.parent is node, child, "has another parent")
        require(child.namespace == node.namespace, child, "hangs in another namespace")
        require(len(child.run) == len(child.pages) * page_bytes > 0, child, "has a wrong run")
    below = sum(child.locks for child in node.children)
    require(node.locks >= below, node, "has fewer locks than are below it")


def check_leaves(nodes: Sequence[Node], leaves: LeafHeap) -> None:
    """Eviction can find every leaf that it may take."""
    for node in nodes:
        require(not node.is_evictable_leaf or node in leaves, node, "cannot be found by eviction")


def check_accounts(
    nodes: Sequence[Node],
    pool: PagePool,
    evictable: int,
    protected: int,
    private: int | None,
) -> None:
    """Tree pages are distinct and referenced; free + evictable + protected + private == total."""
    pool.check()
    pages = np.concatenate([NO_PAGES, *(node.pages for node in nodes)])
    require(len(distinct(pages)) == len(pages), pool, "a page is in the tree more than once")
    require(bool(pool.references(pages).all()), pool, "a page in the tree is free")
    locked = sum(len(node.pages) for node in nodes if node.locks)
    unlocked = len(pages) - locked
    counted = f"{evictable} evictable + {protected} protected"
    if (evictable, protected) != (unlocked, locked):
        raise InvariantError(f"{counted} pages, but {unlocked} unlocked and {locked} locked")
    outside = pool.total - pool.free - len(pages)
    if private not in (None, outside):
        raise InvariantError(f"{pool.free} free + {counted} + {private} private != {pool.total}")
