from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phloem.kernels.reference.mask import apply_mask


@given(st.data())
def test_bits_decide(data: st.DataObject) -> None:
    size, words = data.draw(st.integers(1, 130)), data.draw(st.integers(1, 5))
    rows = data.draw(st.lists(st.integers(0, 5), unique=True))
    mask = [
        data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=words, max_size=words))
        for _ in rows
    ]
    logits = torch.randn(6, size)
    before = logits.clone()
    apply_mask(
        logits,
        torch.tensor(mask, dtype=torch.int32).reshape(len(rows), words),
        torch.tensor(rows, dtype=torch.int64),
    )
    for row in range(6):
        for token in range(size):
            allowed = row not in rows or (
                token < 32 * words and mask[rows.index(row)][token // 32] >> token % 32 & 1
            )
            assert logits[row, token] == (before[row, token] if allowed else -torch.inf)


def test_rows_and_mask_must_match() -> None:
    with pytest.raises(ValueError, match="mask has 1 rows for 2"):
        apply_mask(torch.zeros(2, 3), torch.zeros(1, 1, dtype=torch.int32), torch.tensor([0, 1]))
