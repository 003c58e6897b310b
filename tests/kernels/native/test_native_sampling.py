"""Masks by their definition; draws by the reference's, and never outside of the filters."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from native_runner import EACH_KERNELS, native_ops, normal
from torch import Tensor

from phloem.kernels.ops import NO_TOKEN, SamplingBatch
from phloem.kernels.reference.backend import ReferenceOps

VOCABULARIES = 1, 5, 49152
EDGE = 1e-6
"""Rounding may carry a token this far over the edge of a filter, relative to all weights."""


def parameters(rows: int, **given: float) -> SamplingBatch:
    """The same parameters for all rows; row i has seed 0 and position i."""

    def full(name: str, default: float, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.full((rows,), given.get(name, default), dtype=dtype)

    return SamplingBatch(
        temperature=full("temperature", 1.0),
        top_k=full("top_k", 1 << 30, torch.int64),
        top_p=full("top_p", 1.0),
        min_p=full("min_p", 0.0),
        seed=full("seed", 0, torch.int64),
        position=torch.arange(rows),
    )


def random_parameters(rows: int, vocabulary: int, seed: int) -> SamplingBatch:
    generator = torch.Generator().manual_seed(seed)

    def choose(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
        which = torch.randint(len(values), (rows,), generator=generator)
        return torch.tensor(values, dtype=dtype)[which]

    def whole() -> Tensor:
        return torch.randint(-(2**62), 2**62, (rows,), generator=generator)

    return SamplingBatch(
        temperature=choose(0.0, 0.3, 0.7, 1.0, 1.5, 4.0),
        top_k=choose(1, 2, 5, 40, vocabulary, dtype=torch.int64),
        top_p=choose(0.05, 0.5, 0.9, 0.95, 1.0),
        min_p=choose(0.0, 0.0, 0.05, 0.3),
        seed=whole(),
        position=whole().abs(),
    )


def random_logits(rows: int, vocabulary: int, seed: int) -> Tensor:
    """With many equals, and some tokens forbidden."""
    logits = (normal(rows, vocabulary, seed=seed) * 12).round() / 4
    hidden = torch.rand(logits.shape, generator=torch.Generator().manual_seed(seed)) < 0.2
    hidden[:, 0] = False
    return logits.masked_fill_(hidden, -torch.inf)


def assert_allowed(logits: Tensor, batch: SamplingBatch, chosen: Tensor) -> None:
    """Every choice passes top_k, then top_p, then min_p; in float64."""
    for row, token in enumerate(chosen.tolist()):
        temperature = batch.temperature[row].double()
        if temperature == 0:
            assert token == logits[row].argmax()
            continue
        scores = (logits[row].double() - logits[row].max()) / temperature
        ranked = scores.sort(descending=True, stable=True)  # the lowest id first of equals
        weights = ranked.values.exp()[: int(batch.top_k[row])]
        rank = (ranked.indices == token).nonzero().item()
        assert rank < len(weights), "beyond top_k"
        before, whole = weights[:rank].sum(), weights.sum()
        assert rank == 0 or before < (batch.top_p[row] + EDGE) * whole, "beyond top_p"
        assert weights[rank] >= batch.min_p[row] - EDGE, "below min_p"
        assert logits[row, token] > -torch.inf


@EACH_KERNELS
@pytest.mark.parametrize("rows, vocabulary", [(2000, 1), (2000, 5), (2000, 333), (40, 49152)])
def test_draws_are_the_reference_s(kernels: str, rows: int, vocabulary: int) -> None:
    logits = random_logits(rows, vocabulary, seed=rows + vocabulary)
    batch = random_parameters(rows, vocabulary, seed=vocabulary)
    chosen = native_ops(kernels).sample(logits, batch)
    assert_allowed(logits, batch, chosen)
    same = (chosen == ReferenceOps().sample(logits, batch)).double().mean()
    assert same >= 0.995


@EACH_KERNELS
@pytest.mark.parametrize("filters", [{}, {"top_k": 7}, {"top_p": 0.6}, {"min_p": 0.2}])
def test_draws_from_smooth_logits(kernels: str, filters: dict[str, float]) -> None:
    """All tokens differ, as a model's do."""
    logits = normal(2000, 100, seed=3) * 3
    batch = parameters(2000, **filters)
    chosen = native_ops(kernels).sample(logits, batch)
    assert_allowed(logits, batch, chosen)
    assert (chosen == ReferenceOps().sample(logits, batch)).double().mean() >= 0.995


@EACH_KERNELS
def test_draws_follow_the_distribution(kernels: str) -> None:
    """Chi-square of 8,000 draws over 5 tokens, at the 0.1 % level."""
    logits = torch.tensor([1.0, -math.inf, 2.0, 0.0, 2.5, -1.0])
    chosen = native_ops(kernels).sample(logits.repeat(8_000, 1), parameters(8_000))
    counts = chosen.bincount(minlength=6)[logits.isfinite()].double()
    wanted = torch.softmax(logits[logits.isfinite()].double(), dim=0) * 8_000
    assert counts.sum() == 8_000
    assert ((counts - wanted) ** 2 / wanted).sum() < 18.5


@EACH_KERNELS
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_greedy_takes_the_first_of_the_largest(kernels: str, vocabulary: int) -> None:
    logits = random_logits(20, vocabulary, seed=1)
    logits[3] = -3.0
    logits[4] = -torch.inf
    logits[4, vocabulary // 2] = -1e30
    chosen = native_ops(kernels).sample(logits, parameters(20, temperature=0.0))
    assert torch.equal(chosen, logits.argmax(dim=1))
    assert chosen[3] == 0


@EACH_KERNELS
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("temperature", [1e-6, 1e-30])
def test_a_tiny_temperature_takes_one_of_the_largest(
    kernels: str, vocabulary: int, temperature: float
) -> None:
    logits = random_logits(20, vocabulary, seed=2)
    chosen = native_ops(kernels).sample(logits, parameters(20, temperature=temperature))
    assert torch.equal(logits.gather(1, chosen[:, None])[:, 0], logits.amax(dim=1))


@EACH_KERNELS
@pytest.mark.parametrize("temperature", [1e6, 1e30])
def test_a_huge_temperature_takes_any_allowed_token(kernels: str, temperature: float) -> None:
    logits = random_logits(1, 40, seed=2).repeat(3_000, 1)
    batch = parameters(3_000, temperature=temperature)
    chosen = native_ops(kernels).sample(logits, batch)
    assert set(chosen.tolist()) == set(logits[0].isfinite().nonzero()[:, 0].tolist())
    assert (chosen == ReferenceOps().sample(logits, batch)).double().mean() >= 0.995


@EACH_KERNELS
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_top_1_is_the_first_of_the_largest(kernels: str, vocabulary: int) -> None:
    logits = random_logits(50, vocabulary, seed=4)
    chosen = native_ops(kernels).sample(logits, parameters(50, top_k=1))
    assert torch.equal(chosen, logits.argmax(dim=1))


@EACH_KERNELS
def test_equals_are_cut_from_the_end(kernels: str) -> None:
    """All tokens are as likely: 3 stay of them, or those that make up half."""
    ops, logits = native_ops(kernels), torch.zeros(2_000, 100)
    assert set(ops.sample(logits, parameters(2_000, top_k=3)).tolist()) == {0, 1, 2}
    assert set(ops.sample(logits, parameters(2_000, top_p=0.5)).tolist()) == set(range(50))


@EACH_KERNELS
@pytest.mark.parametrize("vocabulary", [1, 4, 8, 17, 1000])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [-math.inf, math.nan, math.inf])
def test_rows_without_a_choice_get_no_token(
    kernels: str, vocabulary: int, temperature: float, value: float
) -> None:
    logits = torch.zeros(5, vocabulary)
    logits[1], logits[4] = value, value
    chosen = native_ops(kernels).sample(logits, parameters(5, temperature=temperature))
    assert (chosen == NO_TOKEN).tolist() == [False, True, False, False, True]


@EACH_KERNELS
@pytest.mark.parametrize("top_p", [1e-46, 1e-38, 1e-9])
def test_the_smallest_top_p_leaves_the_likeliest(kernels: str, top_p: float) -> None:
    logits = random_logits(10, 300, seed=4)
    chosen = native_ops(kernels).sample(logits.clone(), parameters(10, top_p=top_p))
    assert chosen.tolist() == logits.argmax(dim=1).tolist()


@EACH_KERNELS
@pytest.mark.parametrize("place", [0, 7, 8, 15, 16, 99])
def test_one_nan_spoils_a_row(kernels: str, place: int) -> None:
    logits = torch.zeros(2, 100)
    logits[1, place] = math.nan
    chosen = native_ops(kernels).sample(logits, parameters(2, temperature=0.0))
    assert chosen.tolist() == [0, NO_TOKEN]


@EACH_KERNELS
def test_a_row_draws_the_same_in_any_batch(kernels: str) -> None:
    ops, logits, batch = (
        native_ops(kernels), random_logits(40, 777, seed=6), random_parameters(40, 777, seed=6)
    )  # fmt: skip
    whole = ops.sample(logits, batch)
    for row in range(40):
        alone = SamplingBatch(
            *(getattr(batch, name)[row : row + 1] for name in SamplingBatch.__slots__)
        )
        assert ops.sample(logits[row : row + 1], alone).tolist() == [whole[row]]


@EACH_KERNELS
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_bits_of_a_mask_decide(kernels: str, data: st.DataObject) -> None:
    size, words = data.draw(st.integers(1, 130)), data.draw(st.integers(1, 5))
    rows = data.draw(st.lists(st.integers(0, 5), unique=True))
    word = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, -1])
    masks = [data.draw(st.lists(word, min_size=words, max_size=words)) for _ in rows]
    logits = normal(6, size)
    before = logits.clone()
    native_ops(kernels).apply_mask(
        logits,
        torch.tensor(masks, dtype=torch.int32).reshape(len(rows), words),
        torch.tensor(rows, dtype=torch.int64),
    )
    for row in range(6):
        for token in range(size):
            allowed = row not in rows or (
                token < 32 * words and masks[rows.index(row)][token // 32] >> token % 32 & 1
            )
            assert logits[row, token] == (before[row, token] if allowed else -torch.inf)


def test_rows_and_masks_must_match() -> None:
    with pytest.raises(ValueError, match="mask has 1 rows for 2"):
        native_ops("portable").apply_mask(
            torch.zeros(2, 3), torch.zeros(1, 1, dtype=torch.int32), torch.tensor([0, 1])
        )
