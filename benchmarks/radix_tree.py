"""What the radix tree costs, beside SGLang's tree and a hash chain of blocks, in one run.

    python benchmarks/radix_tree.py [--repeats 7]

A case has a key of so many tokens and a tree with so many nodes of two pages beside it. SGLang's
tree takes part where ``sglang`` can be imported. Times are medians of interleaved repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from trees.hash_chain import HashChain
from trees.phloem import Phloem
from trees.tree import PAGE, Tokens, Tree

try:
    from trees.sglang import SGLang
except ImportError as error:
    print(f"sglang is skipped: {error}")
    SGLang = None

LENGTHS = 1_000, 10_000, 100_000
NODES = 10, 1_000, 100_000
NODE_PAGES = 2
VOCABULARY = 49_152
Factory = Callable[[int], Tree]
Times = dict[str, list[list[float]]]


@dataclass(frozen=True)
class Case:
    """A key of ``length`` tokens, in a tree that has ``nodes`` other nodes."""

    length: int
    nodes: int

    @property
    def pages(self) -> int:
        return self.length // PAGE


def random_tokens(pages: int, seed: int) -> Tokens:
    random = np.random.default_rng(seed)
    return random.integers(0, VOCABULARY, pages * PAGE).astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    factories: list[Factory] = [each for each in (Phloem, HashChain, SGLang) if each is not None]
    names = [factory(1).name for factory in factories]
    others = " | ".join(f"{name} | ratio" for name in names[1:])
    print(f"| operation | tokens | nodes | {names[0]}, us | {others} |")
    print("|" + "---|" * (4 + 2 * (len(names) - 1)))
    for case in (Case(length, nodes) for nodes in NODES for length in LENGTHS):
        for operation, times in measure(factories, case, options.repeats).items():
            print(row(operation, case, [statistics.median(each) for each in times]), flush=True)


def row(operation: str, case: Case, seconds: list[float]) -> str:
    ours, *others = seconds
    rest = " | ".join(f"{each * 1e6:,.1f} | {each / ours:.1f}" for each in others)
    return f"| {operation} | {case.length:,} | {case.nodes:,} | {ours * 1e6:,.1f} | {rest} |"


def measure(factories: list[Factory], case: Case, repeats: int) -> Times:
    """Operation -> seconds of each repeat, by contestant."""
    trees = [filled(factory, case, repeats) for factory in factories]
    times: Times = {}
    for repeat in range(repeats):
        for index, tree in enumerate(trees):
            for operation, seconds in operations(tree, case, repeat):
                times.setdefault(operation, [[] for _ in trees])[index].append(seconds)
    return times


def filled(factory: Factory, case: Case, repeats: int) -> Tree:
    tree = factory(NODE_PAGES * case.nodes + repeats * case.pages)
    for node in range(case.nodes):
        tree.insert(tree.prepare(random_tokens(NODE_PAGES, node)))
    return tree


def operations(tree: Tree, case: Case, repeat: int) -> Iterator[tuple[str, float]]:
    """Evict half of the other nodes, which are the oldest, and put them back; insert a new key,
    find it, and find the half that it shares with another."""
    oldest = case.nodes // 2
    yield "evict a page", timed(lambda: tree.evict(oldest * NODE_PAGES)) / oldest / NODE_PAGES
    for node in (repeat * oldest + i for i in range(oldest)):
        tree.insert(tree.prepare(random_tokens(NODE_PAGES, node % case.nodes)))
    key = random_tokens(case.pages, repeat + 1_000_000)
    prepared = tree.prepare(key)
    yield "insert", timed(lambda: tree.insert(prepared))
    yield "match", timed(lambda: require(tree.match(prepared), case.pages * PAGE))
    key[case.pages // 2 * PAGE :] += 1
    other = tree.prepare(key)
    yield "split", timed(lambda: require(tree.match(other), case.pages // 2 * PAGE))


def timed(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def require(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} tokens are cached, not {expected}")


if __name__ == "__main__":
    main()
