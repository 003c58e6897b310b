"""Linear maps.

In float32 on a CPU the weights are packed for oneDNN by the ops that ``torch.compile`` freezes a
model to. Beside being quicker than ``torch.nn.functional.linear`` for few rows, a row's result
then has the same bits whatever the number of rows, which MKL does not give.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from phloem.kernels.blocks import StoredWeight, check_parts
from phloem.kernels.ops import Embedding, Linear

PACKS = hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
"""Whether torch was built with oneDNN."""


def prepare_linear(parts: Sequence[StoredWeight], bias: Tensor | None = None) -> Linear:
    """Stack the weights [N_i, M], and pack them where that helps.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: a weight is in blocks.
    """
    check_parts(parts, bias)
    weights = [dense(part) for part in parts]
    weight = weights[0] if len(weights) == 1 else torch.cat(weights)
    if weight.device.type == "cpu" and weight.dtype == torch.float32 and PACKS:
        weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    return Linear(weight, bias)


def dense(weight: StoredWeight) -> Tensor:
    if not isinstance(weight, Tensor):
        raise TypeError(f"the reference has no {weight.kind} blocks")
    return weight


def prepare_embedding(weight: StoredWeight) -> Embedding:
    """The table as it is."""
    return Embedding(dense(weight))


def tied_linear(embedding: Embedding) -> Linear:
    """A packed copy of the table."""
    return prepare_linear([embedding.weight])


def linear(x: Tensor, linear: Linear) -> Tensor:
    """x W^T + b for x [..., M]."""
    weight: Tensor = linear.weight
    if weight.is_mkldnn:
        packed: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, linear.bias, "none", [], "")
        return packed
    return F.linear(x, weight, linear.bias)


def embedding(token_ids: Tensor, table: Embedding, scale: float = 1.0) -> Tensor:
    """Rows of the table, scaled."""
    rows = F.embedding(token_ids, table.weight)
    return rows if scale == 1.0 else rows * scale


def logits(hidden: Tensor, rows: Tensor, head: Linear, softcap: float | None = None) -> Tensor:
    """The chosen rows' scores over the vocabulary, in float32."""
    scores = linear(hidden.index_select(0, rows), head).float()
    return scores if softcap is None else scores.div_(softcap).tanh_().mul_(softcap)
