"""A row's result has the same bits alone and in any batch.

Shown where it was measured: float32 on AVX2 processors. MKL and oneDNN choose their kernels by
processor and promise nothing of the kind.
"""

from __future__ import annotations

import pytest
import torch
from attention_oracle import make_case
from hypothesis import given, settings
from hypothesis import strategies as st
from paging import ragged_batch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.reference.backend import ReferenceOps

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX2", reason="measured on AVX2 processors"
)

OPS = ReferenceOps()


@pytest.mark.parametrize("shape", [(96, 64), (37, 50), (300, 1536), (2000, 48)])
def test_linear(shape: tuple[int, int]) -> None:
    linear = OPS.prepare_linear([torch.randn(shape)], torch.randn(shape[0]))
    x = torch.randn(300, shape[1])
    whole = OPS.linear(x, linear)
    for rows in (1, 2, 3, 5, 8, 17, 64, 129):
        assert torch.equal(OPS.linear(x[-rows:], linear), whole[-rows:])


@pytest.mark.parametrize("size", [40, 96, 1000])
def test_norms_and_activations(size: int) -> None:
    x, residual, weight = torch.randn(300, size), torch.randn(300, size), torch.randn(size)
    whole = torch.cat(
        [OPS.add_rms_norm(x, residual, weight, 1e-5)[0], OPS.silu_mul(x), OPS.gelu_mul(x)], dim=1
    )
    for rows in (1, 2, 3, 64, 129):
        part, rest = x[-rows:], residual[-rows:]
        alone = torch.cat(
            [OPS.add_rms_norm(part, rest, weight, 1e-5)[0], OPS.silu_mul(part), OPS.gelu_mul(part)],
            dim=1,
        )
        assert torch.equal(alone, whole[-rows:])


@settings(max_examples=15, deadline=None)
@given(
    kv_lens=st.lists(st.integers(1, 1000), min_size=1, max_size=5),
    data=st.data(),
    kv_heads=st.sampled_from([1, 3]),
    shared=st.sampled_from([1, 3, 4]),
    window=st.sampled_from([None, 100, 500]),
)
def test_attention(
    kv_lens: list[int], data: st.DataObject, kv_heads: int, shared: int, window: int | None
) -> None:
    queries = [data.draw(st.integers(1, min(length, 200))) for length in kv_lens]
    case = make_case(
        list(zip(queries, kv_lens, strict=True)),
        heads=kv_heads * shared,
        kv_heads=kv_heads,
        size=16,
    )

    def attend(q: Tensor, batch: RaggedBatch) -> Tensor:
        return OPS.attention(q, case.kv, batch, scale=0.25, window=window)

    whole = attend(case.q, case.batch)
    request = data.draw(st.integers(0, len(kv_lens) - 1))
    row = data.draw(st.integers(0, queries[request] - 1))
    length = kv_lens[request] - queries[request] + row + 1
    table = [case.batch.page_table[request].tolist()]
    row += int(case.batch.query_start[request])
    alone = attend(case.q[row : row + 1], ragged_batch([(1, length)], table, 16))
    assert torch.equal(alone[0], whole[row])
