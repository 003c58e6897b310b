"""Gated activations.

They are written out with exp and tanh, whose vectorised and scalar loops in torch give the same
bits; those of ``silu`` and ``gelu`` differ, and which loop an element falls in depends on the
number of rows. Inside they are float32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def silu_mul(gate_up: Tensor) -> Tensor:
    """gate / (1 + exp(-gate)) * up for gate_up [..., gate | up]."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    denominator = gate.neg().exp_().add_(1)
    return torch.div(gate, denominator, out=denominator).mul_(up).to(gate_up.dtype)


def gelu_mul(gate_up: Tensor) -> Tensor:
    """gelu(gate) * up, gelu in its tanh form: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    inner = (gate * gate).mul_(0.044715).add_(1).mul_(gate).mul_(math.sqrt(2 / math.pi))
    return inner.tanh_().add_(1).mul_(gate).mul_(up).mul_(0.5).to(gate_up.dtype)
