"""Penalties as the exact numbers that are added to logits."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from phloem.runtime.protocol import SamplingParams
from phloem.runtime.sampling.edits import logit_edits
from phloem.runtime.scheduling.buffer import IntBuffer
from phloem.runtime.scheduling.sequence import Sequence

EOS = (2,)


def sequence(prompt: list[int], output: list[int], **params: Any) -> Sequence:
    return Sequence(
        request=SimpleNamespace(sampling=SamplingParams(**params)),  # type: ignore[arg-type]
        index=0,
        seed=0,
        arrival=0.0,
        namespace="",
        token_limit=100,
        output=None,  # type: ignore[arg-type]
        tokens=IntBuffer(prompt + output),
        prompt_length=len(prompt),
    )


def added(*sequences: Sequence) -> dict[tuple[int, int], float]:
    edits = logit_edits(sequences, EOS)
    total: dict[tuple[int, int], float] = {}
    for row, token, value in zip(
        edits.added_rows.tolist(),
        edits.added_tokens.tolist(),
        edits.added_values.tolist(),
        strict=True,
    ):
        total[row, token] = total.get((row, token), 0.0) + value
    return total


def test_no_parameters_no_edits() -> None:
    edits = logit_edits([sequence([1], [5])], EOS)
    assert len(edits.added_rows) == len(edits.repetition_rows) == 0


def test_frequency_and_presence_count_the_output_only() -> None:
    seq = sequence([9, 9, 7], [5, 5, 6], frequency_penalty=0.5, presence_penalty=0.25)
    assert added(seq) == {(0, 5): -1.25, (0, 6): -0.75}


def test_negative_penalties_reward() -> None:
    assert added(sequence([9], [5], frequency_penalty=-1.0)) == {(0, 5): 1.0}


def test_bias_adds_to_penalties_row_by_row() -> None:
    first = sequence([9], [5], presence_penalty=1.0, logit_bias={5: 3.0, 8: -2.0})
    second = sequence([9], [], logit_bias={5: 0.5})
    assert added(first, second) == {(0, 5): 2.0, (0, 8): -2.0, (1, 5): 0.5}


def test_the_minimum_forbids_ends_until_it_is_reached() -> None:
    params = {"min_new_tokens": 2, "stop_token_ids": (11,)}
    assert added(sequence([9], [5], **params)) == {(0, 2): -math.inf, (0, 11): -math.inf}
    assert added(sequence([9], [5, 5], **params)) == {}


def test_repetition_names_each_known_token_once() -> None:
    edits = logit_edits([sequence([9, 9, 7], [5, 7], repetition_penalty=1.5)], EOS)
    np.testing.assert_array_equal(edits.repetition_tokens, [5, 7, 9])
    np.testing.assert_array_equal(edits.repetition_values, np.float32([1.5] * 3))
