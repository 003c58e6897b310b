"""A request's logits have the same bits alone and in any batch, in any chunks, on any threads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from native_runner import EACH_KERNELS
from paged_requests import one_by_one, schedule
from toy_model import LONGEST, MODES, MOST, toy

DTYPES = torch.float32, torch.bfloat16, torch.int8
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])
EACH_MODE = pytest.mark.parametrize("mode", MODES)


@EACH_KERNELS
@EACH_DTYPE
@EACH_MODE
@settings(max_examples=4, deadline=None)
@given(
    lengths=st.lists(
        st.integers(1, LONGEST) | st.sampled_from([127, 128, 129, 257]),
        min_size=1,
        max_size=len(MOST),
    ),
    seed=st.integers(0, 999),
    threads=st.integers(1, 3),
)
def test_any_schedule_gives_the_same_bits(
    kernels: str, dtype: torch.dtype, mode: str, lengths: list[int], seed: int, threads: int
) -> None:
    alone = toy(kernels, dtype, mode, 1).logits(lengths, one_by_one(lengths))
    assert alone.isfinite().all()
    together = toy(kernels, dtype, mode, threads).logits(lengths, schedule(lengths, seed))
    assert torch.equal(alone, together)


@EACH_KERNELS
@EACH_DTYPE
@EACH_MODE
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_token_by_token(kernels: str, dtype: torch.dtype, mode: str, threads: int) -> None:
    """Decode rows of two requests, whose keys are shared out among threads, against prefills."""
    lengths = [150, 132]
    steps = [[(0, 120), (1, 110)], *[[(0, 1), (1, 1)]] * 22, [(0, 8)]]
    model = toy(kernels, dtype, mode, threads)
    assert torch.equal(model.logits(lengths, steps), model.logits(lengths, one_by_one(lengths)))
