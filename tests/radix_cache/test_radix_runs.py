import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phloem.radix_cache.runs import TOKEN_BYTES, decode, encode, shared_tokens

TOKEN = st.sampled_from([0, 1, 255, 256, 65536, 2**31 - 1])
RUN = st.lists(TOKEN, max_size=6)


def array(tokens: list[int]) -> np.ndarray:
    return np.array(tokens, dtype=np.int32)


@given(RUN)
def test_decode_inverts_encode(tokens: list[int]) -> None:
    run = encode(array(tokens))
    assert len(run) == len(tokens) * TOKEN_BYTES
    assert decode(run).tolist() == tokens


@given(RUN, RUN)
def test_bytes_order_as_tokens_do(a: list[int], b: list[int]) -> None:
    assert (encode(array(a)) < encode(array(b))) == (a < b)


@given(RUN, RUN, st.integers(0, 6))
def test_shared_tokens_counts_the_common_head(a: list[int], b: list[int], at: int) -> None:
    at = min(at, len(b))
    pairs = list(zip(a, b[at:], strict=False))
    expected = next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))
    assert shared_tokens(encode(array(a)), encode(array(b)), at * TOKEN_BYTES) == expected


def test_strided_tokens_are_read_in_order() -> None:
    assert decode(encode(array([1, 2, 3, 4])[::2])).tolist() == [1, 3]


@pytest.mark.parametrize(
    "tokens",
    [np.array([2**32 + 1]), np.array([1.0]), np.array([[1]], dtype=np.int32)],
)
def test_other_arrays_are_refused(tokens: np.ndarray) -> None:
    with pytest.raises(ValueError, match="int32"):
        encode(tokens)
