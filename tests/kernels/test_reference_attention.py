"""The reference attention against the oracle, over ragged batches."""

from __future__ import annotations

import pytest
import torch
from attention_oracle import expected, make_case
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.kernels.reference import tiles
from phloem.kernels.reference.backend import ReferenceOps

spans = st.lists(
    st.integers(1, 70).flatmap(lambda kv: st.tuples(st.integers(1, kv), st.just(kv))),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(
    spans=spans,
    page_size=st.sampled_from([1, 8, 16, 24]),
    kv_heads=st.integers(1, 3),
    shared=st.sampled_from([1, 3, 4, 8]),
    window=st.sampled_from([None, 1, 7, 64]),
    softcap=st.sampled_from([None, 2.0]),
    seed=st.integers(0, 99),
)
def test_any_mix_of_prefill_and_decode(
    spans: list[tuple[int, int]],
    page_size: int,
    kv_heads: int,
    shared: int,
    window: int | None,
    softcap: float | None,
    seed: int,
) -> None:
    case = make_case(
        spans, heads=kv_heads * shared, kv_heads=kv_heads, size=8, page_size=page_size, seed=seed
    )
    out = ReferenceOps().attention(
        case.q, case.kv, case.batch, scale=0.3, window=window, softcap=softcap
    )
    torch.testing.assert_close(
        out.double(), expected(case, 0.3, window, softcap), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("window", [None, 100, 400])
def test_spans_longer_than_a_tile(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "QUERIES", 48)
    case = make_case(
        [(130, 900), (1, 901), (1, 500), (1, 880), (60, 60)], heads=2, kv_heads=1, size=8
    )
    out = ReferenceOps().attention(case.q, case.kv, case.batch, scale=0.3, window=window)
    torch.testing.assert_close(
        out.double(), expected(case, 0.3, window, None), rtol=1e-5, atol=1e-5
    )


def test_bfloat16_is_computed_in_float32() -> None:
    case = make_case([(5, 40), (1, 33)], heads=4, kv_heads=2, size=16, dtype=torch.bfloat16)
    out = ReferenceOps().attention(case.q, case.kv, case.batch, scale=0.25)
    assert out.dtype == torch.bfloat16
    exact = expected(case, 0.25, None, None)
    torch.testing.assert_close(out.double(), exact, rtol=2**-8, atol=1e-6)


def test_query_heads_must_divide_among_kv_heads() -> None:
    case = make_case([(1, 3)], heads=4, kv_heads=2, size=8)
    with pytest.raises(ValueError, match="3 query heads cannot share 2 KV heads"):
        ReferenceOps().attention(case.q[:, :3], case.kv, case.batch, scale=1.0)


def test_layers_of_one_batch_may_differ_in_window() -> None:
    """The plan of a batch is kept from layer to layer; a window must not get another's."""
    case = make_case([(3, 50), (1, 60)], heads=2, kv_heads=1, size=8)
    ops = ReferenceOps()
    for window in (None, 4, None, 9):
        out = ops.attention(case.q, case.kv, case.batch, scale=1.0, window=window)
        exact = expected(case, 1.0, window, None)
        torch.testing.assert_close(out.double(), exact, rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    spans=st.lists(
        st.integers(1, 3000).flatmap(lambda kv: st.tuples(st.integers(1, kv), st.just(kv))),
        min_size=1,
        max_size=6,
    ),
    window=st.sampled_from([None, 20, 1000]),
    heads=st.sampled_from([1, 9, 5000]),
)
def test_tiles_cover_every_query_once_within_bounds(
    spans: list[tuple[int, int]], window: int | None, heads: int
) -> None:
    case = make_case(spans, heads=1, kv_heads=1, size=1)
    plan = tiles.plan_tiles(case.batch, heads, window)
    rows = torch.cat([tile.rows for tile in plan])
    assert rows.sort().values.tolist() == list(range(len(case.q)))
    for tile in plan:
        slots = len(tile.pages) * 16 // len(tile.keys)
        queries = tile.hidden.shape[1]
        assert slots >= max(tiles.ALIGN, *tile.keys)
        assert len(tile.keys) * queries <= tiles.QUERIES
        assert queries == 1 or heads * queries * max(tile.keys) <= tiles.SCORES
