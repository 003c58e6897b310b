"""Linear maps.

In float32 on a CPU the weights are packed for oneDNN by the ops that ``torch.compile`` freezes a
model to. Beside being quicker than ``torch.nn.functional.linear`` for few rows, a row's result
then has the same bits whatever the number of rows, which MKL does not give.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from phloem.kernels.ops import Linear

PACKS = hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
"""Whether torch was built with oneDNN."""


def prepare_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Pack ``weight`` [N, M] where that helps, else keep it as it is."""
    if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        shapes = (tuple(weight.shape), None if bias is None else tuple(bias.shape))
        raise ValueError(f"a linear map needs weight [N, M] and bias [N], not {shapes}")
    if weight.device.type == "cpu" and weight.dtype == torch.float32 and PACKS:
        weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    return Linear(weight, bias)


def linear(x: Tensor, linear: Linear) -> Tensor:
    """x W^T + b for x [..., M]."""
    if linear.weight.is_mkldnn:
        packed: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, linear.weight, linear.bias, "none", [], ""
        )
        return packed
    return F.linear(x, linear.weight, linear.bias)


def embedding(token_ids: Tensor, weight: Tensor, scale: float = 1.0) -> Tensor:
    """Rows of ``weight``, scaled."""
    rows = F.embedding(token_ids, weight)
    return rows if scale == 1.0 else rows * scale


def logits(hidden: Tensor, rows: Tensor, head: Linear, softcap: float | None = None) -> Tensor:
    """The chosen rows' scores over the vocabulary, in float32."""
    scores = linear(hidden.index_select(0, rows), head).float()
    return scores if softcap is None else scores.div_(softcap).tanh_().mul_(softcap)
