"""Filters by their definitions, draws by their statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.kernels.ops import NO_TOKEN, SamplingBatch
from phloem.kernels.reference.sampling import draw, sample
from phloem.kernels.reference.uniform import uniform

LAST = 1 - 2.0**-53
"""The largest number that ``uniform`` gives."""

some_logits = st.lists(
    st.sampled_from([-math.inf, -3.0, -1.0, 0.0, 0.5, 2.0, 9.0]), min_size=1, max_size=40
).filter(lambda values: max(values) > -math.inf)


def parameters(rows: int, **given: float) -> SamplingBatch:
    """The same parameters for all rows; row i has seed 0 and position i."""

    def full(name: str, default: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.full((rows,), given.get(name, default), dtype=dtype)

    return SamplingBatch(
        temperature=full("temperature", 1.0),
        top_k=full("top_k", 1 << 30, torch.int64),
        top_p=full("top_p", 1.0),
        min_p=full("min_p", 0.0),
        seed=full("seed", 0, torch.int64),
        position=torch.arange(rows),
    )


def kept_tokens(logits: list[float], top_k: int, top_p: float, min_p: float) -> set[int]:
    """The tokens that the filters leave, one filter after the other."""
    largest = max(logits)
    weights = [math.exp(value - largest) for value in logits]
    ranked = sorted(range(len(logits)), key=lambda token: (-weights[token], token))[:top_k]
    goal, reached, nucleus = top_p * sum(weights[token] for token in ranked), 0.0, []
    for token in ranked:
        if nucleus and reached >= goal - 1e-9:
            break
        nucleus.append(token)
        reached += weights[token]
    return {token for token in nucleus if weights[token] > 0 and weights[token] >= min_p}


@given(
    some_logits,
    st.integers(1, 45),
    st.sampled_from([0.05, 0.31, 0.77, 1.0]),
    st.sampled_from([0, 0.3, 1]),
)
def test_every_kept_token_and_no_other_can_be_drawn(
    logits: list[float], top_k: int, top_p: float, min_p: float
) -> None:
    kept = kept_tokens(logits, top_k, top_p, min_p)
    largest = max(logits)
    weights = [math.exp(v - largest) if t in kept else 0.0 for t, v in enumerate(logits)]
    edges = np.cumsum(weights) / sum(weights)
    middles = [edges[token] - weights[token] / sum(weights) / 2 for token in sorted(kept)]
    drawn = [
        draw(
            np.array(logits, dtype=np.float32),
            temperature=1.0,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            point=point,
        )
        for point in [0.0, *middles, LAST]
    ]
    assert drawn == [min(kept), *sorted(kept), max(kept)]


@given(some_logits, st.floats(1e-8, 100), st.sampled_from([0.0, 1e-300, 0.5, LAST]))
def test_forbidden_tokens_are_never_drawn(
    logits: list[float], temperature: float, point: float
) -> None:
    token = draw(
        np.array(logits, dtype=np.float32),
        temperature=temperature,
        top_k=len(logits),
        top_p=1.0,
        min_p=0.0,
        point=point,
    )
    assert logits[token] > -math.inf


@pytest.mark.parametrize("given", [{}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.8}])
def test_draws_follow_the_distribution(given: dict[str, float]) -> None:
    """Chi-square of 4,000 draws over 6 tokens, at the 0.1 % level."""
    logits = torch.tensor([1.0, -math.inf, 2.0, 0.0, 2.5, -1.0])
    batch = parameters(4_000, **given)
    counts = sample(logits.expand(4_000, -1), batch).bincount(minlength=6).double()
    kept = kept_tokens(logits.tolist(), int(given.get("top_k", 6)), given.get("top_p", 1.0), 0.0)
    weights = torch.tensor([1.0 if token in kept else 0.0 for token in range(6)]).double()
    weights *= (logits.double() / given.get("temperature", 1.0)).exp()
    wanted = weights / weights.sum() * 4_000
    assert counts[wanted == 0].sum() == 0
    counts, wanted = counts[wanted > 0], wanted[wanted > 0]
    critical = {1: 10.8, 2: 13.8, 3: 16.3, 4: 18.5}[len(wanted) - 1]
    assert ((counts - wanted) ** 2 / wanted).sum() < critical


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_row_draws_the_same_in_any_batch(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 6))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    logits = torch.randn(count, 50, generator=generator)

    def column(values: st.SearchStrategy[float], dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([data.draw(values) for _ in range(count)], dtype=dtype)

    batch = SamplingBatch(
        temperature=column(st.sampled_from([0.0, 0.7, 1.5]), torch.float32),
        top_k=column(st.sampled_from([5, 50]), torch.int64),
        top_p=column(st.sampled_from([0.5, 1.0]), torch.float32),
        min_p=column(st.sampled_from([0.0, 0.1]), torch.float32),
        seed=column(st.integers(-(2**63), 2**63 - 1), torch.int64),
        position=column(st.integers(0, 10**6), torch.int64),
    )
    whole = sample(logits, batch)
    for row in range(count):
        alone = SamplingBatch(
            *(getattr(batch, name)[row : row + 1] for name in SamplingBatch.__slots__)
        )
        assert sample(logits[row : row + 1], alone).tolist() == [whole[row]]


def test_greedy_takes_the_lowest_of_equals() -> None:
    logits = torch.zeros(4, 5000)
    logits[1, 4000:] = 1
    logits[2, [7, 4999]] = 2
    logits[3] = -torch.inf
    logits[3, 4321] = -5
    assert sample(logits, parameters(4, temperature=0.0)).tolist() == [0, 4000, 7, 4321]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [-math.inf, math.nan, math.inf])
def test_a_row_without_a_choice_gets_no_token(temperature: float, value: float) -> None:
    logits = torch.zeros(3, 4)
    logits[1] = value
    chosen = sample(logits, parameters(3, temperature=temperature))
    assert (chosen == NO_TOKEN).tolist() == [False, True, False]


def test_uniform_is_even_and_independent_of_its_neighbours() -> None:
    seeds, positions = np.meshgrid(np.arange(-50, 50), np.arange(100))
    points = uniform(seeds.ravel().astype(np.int64), positions.ravel().astype(np.int64))
    assert points.min() >= 0
    assert points.max() < 1
    counts = np.histogram(points, bins=20, range=(0, 1))[0]
    assert ((counts - 500) ** 2 / 500).sum() < 43.8  # chi-square, 19 degrees, 0.1 %
    grid = points.reshape(100, 100)
    for a, b in (
        (grid[1:], grid[:-1]),
        (grid[:, 1:], grid[:, :-1]),
        (grid[1:, 1:], grid[:-1, :-1]),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.04
