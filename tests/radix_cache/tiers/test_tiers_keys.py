import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phloem.radix_cache.tiers.keys import KEY_BYTES, chain, root_key

TOKENS = np.arange(24, dtype=np.int32)


def keys(tokens: np.ndarray, namespace: str = "", fingerprint: bytes = b"model") -> list[bytes]:
    return list(chain(root_key(fingerprint, namespace), tokens, 8))


def test_one_key_for_each_whole_page() -> None:
    assert len(keys(TOKENS)) == 3
    assert len(keys(TOKENS[:23])) == 2
    assert all(len(key) == KEY_BYTES for key in keys(TOKENS))
    assert keys(TOKENS[:7]) == []


def test_keys_depend_on_what_came_before_only() -> None:
    assert keys(TOKENS)[:2] == keys(TOKENS[:16])


@pytest.mark.parametrize("at", [0, 7, 8, 23])
def test_a_changed_token_changes_its_page_and_all_after(at: int) -> None:
    other = TOKENS.copy()
    other[at] += 1
    same = [a == b for a, b in zip(keys(TOKENS), keys(other), strict=True)]
    assert same == [page < at // 8 for page in range(3)]


@given(
    st.tuples(st.binary(max_size=3), st.text(max_size=3)),
    st.tuples(st.binary(max_size=3), st.text(max_size=3)),
)
def test_fingerprint_and_namespace_are_both_told_apart(
    a: tuple[bytes, str], b: tuple[bytes, str]
) -> None:
    assert (root_key(*a) == root_key(*b)) == (a == b)


def test_a_namespace_may_be_any_text() -> None:
    assert root_key(b"model", "\ud800") != root_key(b"model", "?")


def test_a_chain_may_go_on_from_any_page() -> None:
    first, *rest = keys(TOKENS)
    assert list(chain(first, TOKENS[8:], 8)) == rest
