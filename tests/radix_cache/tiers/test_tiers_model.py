"""Caches over all tiers, restarted and damaged at random; an oracle says how long each hit is.

The oracle keeps prefixes: those that the host has, and the state of those that have files. What a
page holds is a function of its prefix, so a page in the wrong place cannot go unnoticed.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from tiers_helpers import PAGE, PAGE_BYTES, Prefix, TieredCache, Tokens, array, content, prefixes

from phloem.radix_cache import Node
from phloem.radix_cache.tiers.keys import chain, root_key

NAMESPACES = st.sampled_from(["", "", "", "tenant"])
TOKENS = st.sampled_from(["a", "aa", "ab", "aab", "abb", "abab", "abba", "ababa"]).map(
    lambda word: tuple(ord(letter) for letter in word for _ in range(PAGE))
)
"""Few, so that requests often ask for what was asked for before."""


@dataclass(eq=False)
class Running:
    """A request that holds a lock and pages, some of them not in the tree yet."""

    namespace: str
    tokens: Tokens
    node: Node
    pages: list[int]


class TiersMachine(RuleBasedStateMachine):
    running = Bundle("running")

    @initialize(
        pages=st.integers(2, 12),
        host=st.booleans(),
        disk=st.booleans(),
        write=st.sampled_from(["through", "back"]),
    )
    def begin(self, pages: int, host: bool, disk: bool, write: str) -> None:
        self.folder = Path(tempfile.mkdtemp()) if disk else None
        self.options = {"pages": pages, "host_pages": 1000 * host, "write": write}
        self.live: list[Running] = []
        self.files: dict[Prefix, str] = {}  # whole, damaged, or gone and not yet missed
        self.start()

    def start(self) -> None:
        self.cache = TieredCache(self.folder, **self.options)  # type: ignore[arg-type]
        self.host: set[Prefix] = set()
        self.ahead: dict[Prefix, bool] = {}  # read ahead, and found whole or not

    @rule(namespace=NAMESPACES, tokens=TOKENS)
    def queue(self, namespace: str, tokens: Tokens) -> None:
        """A request that waits, and perhaps never has its turn."""
        self.cache.settle()
        below = self.below(prefixes(namespace, tokens))
        for prefix in takewhile(lambda p: p in self.host or p in self.files, below):
            if prefix not in self.host and prefix not in self.ahead:
                self.ahead[prefix] = self.read(prefix)
        self.cache.tiers.prefetch(namespace, array(tokens))
        self.cache.settle()

    @rule(target=running, namespace=NAMESPACES, tokens=TOKENS)
    def arrive(self, namespace: str, tokens: Tokens) -> object:
        """Restore, lock the match, compute the rest into pages of one's own."""
        self.cache.settle()
        whole, before = prefixes(namespace, tokens), self.in_tree()
        expected = self.expect_hit(whole)
        assert self.cache.tiers.restore(namespace, array(tokens))
        self.note_changes(before)
        match = self.cache.tree.match(namespace, array(tokens))
        assert len(match.pages) == expected
        self.cache.tree.lock(match.node)
        self.cache.pool.retain(match.pages)
        request = Running(namespace, tokens, match.node, match.pages.tolist())
        if not self.compute(request, whole[expected:]):
            self.stop(request)
            return multiple()
        self.live.append(request)
        return request

    @rule(namespace=NAMESPACES, tokens=TOKENS)
    def serve(self, namespace: str, tokens: Tokens) -> None:
        """A request that is done before anything else happens."""
        request = self.arrive(namespace, tokens)
        if isinstance(request, Running):
            self.finish(request)

    @rule(request=consumes(running))
    def finish(self, request: Running) -> None:
        """Give the pages to the tree."""
        before, tokens = self.in_tree(), array(request.tokens)
        self.cache.tree.insert(request.namespace, tokens, array(tuple(request.pages)))
        self.note_changes(before)
        self.abort(request)

    @rule(request=consumes(running))
    def abort(self, request: Running) -> None:
        self.live.remove(request)
        self.stop(request)

    @rule(n=st.integers(1, 12))
    def evict(self, n: int) -> None:
        before = self.in_tree()
        self.cache.tree.evict(n)
        self.note_changes(before)

    @precondition(lambda self: self.folder is not None)
    @rule(damage=st.sampled_from(["flip", "cut", "empty", "foreign", "gone"]), data=st.data())
    def damage(self, damage: str, data: st.DataObject) -> None:
        whole = sorted(prefix for prefix, state in self.files.items() if state == "whole")
        if not whole:
            return
        prefix = data.draw(st.sampled_from(whole))
        self.cache.settle()
        spoil(self.file(prefix), damage)
        self.files[prefix] = "gone" if damage == "gone" else "damaged"

    @precondition(lambda self: not self.live)
    @rule(end=st.sampled_from(["orderly", "sudden", "flush"]))
    def end(self, end: str) -> None:
        """The process writes what it holds and ends, or ends at once; or only its cache does."""
        if end == "flush":
            assert self.cache.tree.reset()
            self.host.clear()
            return
        if end == "orderly":
            self.note_files(self.in_tree() | self.host)
            self.cache.close()
        elif self.cache.disk is not None:
            assert self.cache.disk.writer.close(30)
        self.files = {p: state for p, state in self.files.items() if state != "gone"}
        self.start()

    def teardown(self) -> None:
        if getattr(self, "folder", None) is None:
            return
        self.cache.close()
        self.note_files(self.in_tree() | self.host)
        present = {p for p, state in self.files.items() if state != "gone"}
        assert {self.file(p) for p in present} == set(self.folder.iterdir())
        shutil.rmtree(self.folder)

    @invariant()
    def accounts_add_up(self) -> None:
        if hasattr(self, "cache"):
            held = {page for request in self.live for page in request.pages}
            cached = set(self.tree_pages().values())
            self.cache.tree.check(private=len(held - cached))
            assert set(self.cache.tiers._keys) == cached

    @invariant()
    def pages_hold_what_they_are_used_for(self) -> None:
        if not hasattr(self, "cache"):
            return
        used = list(self.tree_pages().items())
        for request in self.live:
            whole = prefixes(request.namespace, request.tokens)
            used += zip(whole, request.pages, strict=True)
        for prefix, page in used:
            assert (self.cache.read(page) == content(prefix)).all()

    @invariant()
    def the_host_holds_what_the_oracle_says(self) -> None:
        if hasattr(self, "cache"):
            assert self.cache.tiers.host.used == len(self.host) * PAGE_BYTES

    # The oracle

    def expect_hit(self, whole: list[Prefix]) -> int:
        """How many pages a request will find: of the tree, and of the chain below it."""
        below = self.below(whole)
        hit = len(whole) - len(below)
        found = sum(1 for _ in takewhile(self.is_found, below))
        return hit + min(found, self.room(whole[:hit]))

    def below(self, whole: list[Prefix]) -> list[Prefix]:
        """Those that the tree does not have."""
        cached = self.in_tree()
        return list(dropwhile(cached.__contains__, whole))

    def is_found(self, prefix: Prefix) -> bool:
        if prefix in self.host:
            return True
        return self.ahead.pop(prefix) if prefix in self.ahead else self.read(prefix)

    def read(self, prefix: Prefix) -> bool:
        """A file that turns out not to be whole is gone for good."""
        if self.files.get(prefix) == "whole":
            return True
        self.files.pop(prefix, None)
        return False

    def room(self, above: list[Prefix]) -> int:
        """Pages that can be had while those above are kept."""
        namespace, tokens = above[-1] if above else ("", ())
        tree = self.cache.tree
        node = tree.match(namespace, array(tokens)).node
        tree.lock(node)
        pages = self.cache.pool.free + tree.evictable
        tree.unlock(node)
        return pages

    def note_changes(self, before: set[Prefix]) -> None:
        """What left the tree is below now, and so is what is new, if written through."""
        after = self.in_tree()
        if self.options["host_pages"]:
            self.host |= before - after
        else:
            self.note_files(before - after)
        if self.options["write"] == "through":
            self.note_files(after - before)

    def note_files(self, offered: set[Prefix]) -> None:
        if self.folder is not None:
            self.files = {**dict.fromkeys(offered, "whole"), **self.files}

    def file(self, prefix: Prefix) -> Path:
        assert self.folder is not None
        *_, key = chain(root_key(b"model", prefix[0]), array(prefix[1]), PAGE)
        return self.folder / f"{key.hex()}.kv"

    # Steps

    def compute(self, request: Running, missing: list[Prefix]) -> bool:
        """Pages for what is missing; False if there is no room."""
        pool = self.cache.pool
        self.evict(max(len(missing) - pool.free, 0))
        if pool.free < len(missing):
            return False
        for prefix, page in zip(missing, pool.allocate(len(missing)).tolist(), strict=True):
            self.cache.compute(page, prefix)
            request.pages.append(page)
        return True

    def stop(self, request: Running) -> None:
        self.cache.tree.unlock(request.node)
        self.cache.pool.release(array(tuple(request.pages)))

    def in_tree(self) -> set[Prefix]:
        return set(self.tree_pages())

    def tree_pages(self) -> dict[Prefix, int]:
        found = {}
        for node in self.cache.tree.walk():
            start, own = tokens_above(node), tuple(node.tokens.tolist())
            for at, page in enumerate(node.pages.tolist(), 1):
                found[node.namespace, start + own[: at * PAGE]] = page
        return found


def tokens_above(node: Node) -> Tokens:
    assert node.parent is not None
    if node.parent.is_root:
        return ()
    return tokens_above(node.parent) + tuple(node.parent.tokens.tolist())


def spoil(file: Path, damage: str) -> None:
    data = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    elif damage == "flip":
        data[len(data) // 2] ^= 64
        file.write_bytes(data)
    else:
        file.write_bytes({"cut": data[:-1], "empty": b"", "foreign": bytes(len(data))}[damage])


TestTiersModel = TiersMachine.TestCase
TestTiersModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
