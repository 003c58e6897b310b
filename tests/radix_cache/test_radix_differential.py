"""The tree finds what other engines' caches find: a hash chain of blocks, and SGLang's tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees.hash_chain import HashChain
from trees.phloem import Phloem
from trees.tree import PAGE, Tokens, Tree

try:
    from trees.sglang import SGLang
except ImportError:
    SGLang = None

CAPACITY = 2000
RUNS = st.tuples(st.sampled_from([1, 256, 2**31 - 1]), st.integers(1, 3 * PAGE))


def whole_pages(runs: list[tuple[int, int]]) -> Tokens:
    tokens = [token for token, length in runs for _ in range(length)]
    return np.array(tokens[: len(tokens) // PAGE * PAGE], dtype=np.int32)


SEQUENCES = st.lists(
    st.tuples(st.booleans(), st.lists(RUNS, min_size=1, max_size=4).map(whole_pages)), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(SEQUENCES)
def test_a_hash_chain_finds_the_same(sequences: list[tuple[bool, Tokens]]) -> None:
    find_the_same(Phloem(CAPACITY), HashChain(CAPACITY), sequences)


@pytest.mark.skipif(SGLang is None, reason="sglang is not installed")
@settings(max_examples=60, deadline=None)
@given(SEQUENCES)
def test_sglang_finds_the_same(sequences: list[tuple[bool, Tokens]]) -> None:
    find_the_same(Phloem(CAPACITY), SGLang(CAPACITY), sequences)


def find_the_same(ours: Tree, theirs: Tree, sequences: list[tuple[bool, Tokens]]) -> None:
    for is_insert, tokens in sequences:
        mine, other = ours.prepare(tokens), theirs.prepare(tokens)
        assert ours.match(mine) == theirs.match(other)
        if is_insert:
            ours.insert(mine)
            theirs.insert(other)
