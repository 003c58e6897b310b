"""How long a step would take: a linear model of a machine with a model on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phloem.runtime.scheduling.scheduler import Span


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of each part of a step.

    Attributes:
        step: of any step: launching, reading the weights.
        token: of each token computed, without its attention.
        row: of each sequence whose logits are wanted.
        attended: of each pair of a computed token and one that it attends to.
        read: of each cached token that a sequence's span reads.
    """

    step: float
    token: float
    row: float
    attended: float
    read: float

    def seconds(self, spans: Iterable[Span]) -> float:
        """One step that computes the spans; they are not computed yet."""
        total = self.step
        for span in spans:
            before, count = span.seq.computed, span.count
            total += self.token * count + self.read * before + self.row * span.reaches_end
            total += self.attended * count * (before + (count + 1) / 2)
        return total


CPU = CostModel(step=1.6e-3, token=4.0e-4, row=3.2e-4, attended=1.4e-7, read=6.6e-7)
"""SmolLM2-135M, Q4_1, on two cores: fitted to the README's steps (512 tokens of prefill in 227 ms;
2.55, 9.5 and 31.5 ms for 1, 8 and 32 sequences of 256 tokens), with the time to read a token's KV,
23 kB, at 35 GB/s."""

H100 = CostModel(step=6.0e-3, token=3.2e-5, row=2.0e-6, attended=1.0e-9, read=4.9e-8)
"""Like an 8-billion model in bfloat16 on one H100, by arithmetic, not measured: 16 GB of weights
and 131 kB of KV a token at 2.7 TB/s, 16 GFLOP a token and 0.5 MFLOP a pair at 500 TFLOP/s."""
