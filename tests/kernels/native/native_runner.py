"""Single ops of the native library: recorded over the rows of a table, run, and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch
from paging import ragged_batch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.native.backend import NativeOps
from phloem.kernels.native.library import kernels_name
from phloem.kernels.ops import KVLayer

NAMES = "avx512_bf16", "avx512", "avx2", "portable"
RUNNING = [name for name in NAMES if kernels_name(name)]
"""Instruction sets that this processor has."""
EACH_KERNELS = pytest.mark.parametrize("kernels", RUNNING)
EACH_EXACTNESS = pytest.mark.parametrize("exact", [True, False], ids=["exact", "int8"])

NO_ROWS = torch.empty(0, dtype=torch.int64)


@cache
def native_ops(kernels: str, *, exact: bool = True, threads: int = 2) -> NativeOps:
    """Ops that all tests share: starting threads costs more than most tests do."""
    return NativeOps(threads, exact=exact, kernels=kernels)


class Recorded:
    """What ``body`` makes of rows of ``table``, as a program.

    ``body`` gets the values [T, M] that the rows become, and a batch and the pages to hand on.
    """

    def __init__(
        self,
        ops: NativeOps,
        table: Tensor,
        body: Callable[[Tensor, RaggedBatch, Sequence[KVLayer]], Tensor],
        kv: Sequence[KVLayer] = (),
    ) -> None:
        def step(
            token_ids: Tensor, batch: RaggedBatch, kv: Sequence[KVLayer], rows: Tensor
        ) -> Tensor:
            out = body(ops.embedding(token_ids, ops.prepare_embedding(table)), batch, kv)
            self._view = ops.tape.view(out)
            return out

        self._run = ops.compile(step, kv)
        self._program = ops.programs.pop()

    @property
    def names(self) -> list[str]:
        """Of the instructions that were left after fusing."""
        self._program.profile(True)
        return [each.name for each in self._program.times()]

    def run(self, token_ids: Tensor, batch: RaggedBatch) -> Tensor:
        """Float32 [T, N]."""
        self._run(token_ids, batch, NO_ROWS)
        return self._program.read(self._view, len(token_ids))

    def first(self, rows: int) -> Tensor:
        """Of the table's first rows, in a batch of one request without pages."""
        return self.run(torch.arange(rows), one_request(rows))


def compute(ops: NativeOps, x: Tensor, body: Callable[[Tensor], Tensor]) -> Tensor:
    """What ``body`` makes of the rows of ``x``."""
    return Recorded(ops, x, lambda values, batch, kv: body(values)).first(len(x))


def one_request(queries: int) -> RaggedBatch:
    """All rows in one request, for ops that do not look at pages."""
    return ragged_batch([(queries, queries)], [[0]], page_size=queries)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Normally distributed float32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
