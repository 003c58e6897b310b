"""The native ops as one object: a model is recorded once and replayed by the library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.blocks import StoredWeight, check_parts
from phloem.kernels.native import tape
from phloem.kernels.native.engine import BLOCK_KINDS, Matrix, NativeEngine, stored_kind
from phloem.kernels.native.kv import page_sides
from phloem.kernels.native.machine import default_threads
from phloem.kernels.native.program import Program
from phloem.kernels.native.sampling import apply_mask, sample
from phloem.kernels.native.tape import Tape
from phloem.kernels.ops import (
    Embedding,
    KVLayer,
    Linear,
    ModelStep,
    PageSide,
    SamplingBatch,
    Step,
)

MOST_QUERIES = 64


class NativeOps:
    """``kernels.ops.Ops`` in C++; the ops of a model may be used inside of ``compile`` only.

    Attributes:
        programs: what was compiled, for those who measure.
    """

    name = "native"
    block_kinds = BLOCK_KINDS

    def __init__(
        self, threads: int | None = None, *, exact: bool = False, kernels: str = "auto"
    ) -> None:
        """Start ``threads`` threads (default: one for each physical core).

        With ``exact``, activations stay float32 where weights are quantised, and are else rounded
        to 8 bits in blocks of 32, with a scale for each.

        Raises:
            ValueError: the library was not built, or has nothing for this processor.
        """
        self.engine = NativeEngine(threads or default_threads(), kernels)
        self.exact = exact
        self.programs: list[Program] = []
        self._tape: Tape | None = None

    # Preparing

    def prepare_linear(self, parts: Sequence[StoredWeight], bias: Tensor | None = None) -> Linear:
        """One matrix for each run of parts of one type."""
        check_parts(parts, bias)
        runs = groupby(parts, key=stored_kind)
        return Linear(tuple(Matrix(self.engine, list(run)) for _, run in runs), bias)

    def prepare_embedding(self, weight: StoredWeight) -> Embedding:
        return Embedding(Matrix(self.engine, [weight]))

    def tied_linear(self, embedding: Embedding) -> Linear:
        return Linear((embedding.weight,))

    def page_sides(
        self, page_size: int, heads: int, size: int, dtype: torch.dtype
    ) -> tuple[PageSide, ...]:
        return page_sides(self.engine.library, page_size, heads, size, dtype)

    def compile(self, step: ModelStep, kv: Sequence[KVLayer]) -> Step:
        """Record ``step`` on placeholders of one row."""
        self._tape = Tape()
        try:
            step(torch.empty(1), PLACEHOLDER, kv, torch.empty(1))
            program = Program(self.engine, self._tape, exact=self.exact)
        finally:
            self._tape = None
        self.programs.append(program)
        return program.run

    # Recording

    @property
    def tape(self) -> Tape:
        if self._tape is None:
            raise RuntimeError("native ops record a model, and only inside of compile")
        return self._tape

    def embedding(self, token_ids: Tensor, table: Embedding, scale: float = 1.0) -> Tensor:
        out = self.tape.new(table.weight.inputs)
        self.tape.write(tape.Embedding(table.weight, scale, self.tape.view(out)))
        return out

    def linear(self, x: Tensor, linear: Linear) -> Tensor:
        out = self.tape.new(sum(matrix.rows for matrix in linear.weight))
        row = 0
        for matrix in linear.weight:
            columns = slice(row, row + matrix.rows)
            bias = None if linear.bias is None else linear.bias[columns]
            self.tape.write(
                tape.Linear(self.tape.view(x), matrix, bias, self.tape.view(out[:, columns]))
            )
            row += matrix.rows
        return out

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        out = self.tape.new(*x.shape[1:])
        self.tape.write(tape.Norm(self.tape.view(x), x.shape[-1], weight, eps, self.tape.view(out)))
        return out

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        total = self.tape.new(*x.shape[1:])
        views = (self.tape.view(each) for each in (x, residual, total))
        self.tape.write(tape.Add(*views))
        return self.rms_norm(total, weight, eps), total

    def rope_and_cache(
        self, q: Tensor, k: Tensor, v: Tensor, rope: Tensor, kv: KVLayer, batch: RaggedBatch
    ) -> Tensor:
        out = self.tape.new(*q.shape[1:])
        self.tape.write(
            tape.RopeAndCache(
                q=self.tape.view(q),
                k=self.tape.view(k),
                v=self.tape.view(v),
                size=q.shape[-1],
                table=rope,
                kv=kv,
                out=self.tape.view(out),
            )
        )
        return out

    def attention(
        self,
        q: Tensor,
        kv: KVLayer,
        batch: RaggedBatch,
        *,
        scale: float,
        window: int | None = None,
        softcap: float | None = None,
    ) -> Tensor:
        heads, kv_heads = q.shape[1], kv[0].shape[2]
        if heads % kv_heads or heads // kv_heads > MOST_QUERIES:
            raise ValueError(f"{heads} query heads cannot share {kv_heads} KV heads")
        out = self.tape.new(*q.shape[1:])
        self.tape.write(
            tape.Attention(
                self.tape.view(q), q.shape[-1], kv, scale, window, softcap, self.tape.view(out)
            )
        )
        return out

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        return self._gate(gate_up, "silu")

    def gelu_mul(self, gate_up: Tensor) -> Tensor:
        return self._gate(gate_up, "gelu")

    def _gate(self, gate_up: Tensor, kind: str) -> Tensor:
        out = self.tape.new(gate_up.shape[-1] // 2)
        self.tape.write(tape.Gate(self.tape.view(gate_up), kind, self.tape.view(out)))
        return out

    def logits(
        self, hidden: Tensor, rows: Tensor, head: Linear, softcap: float | None = None
    ) -> Tensor:
        (matrix,) = head.weight
        self.tape.write(tape.Logits(self.tape.view(hidden), matrix, head.bias, softcap))
        return torch.empty(1, matrix.rows)

    # Sampling

    def apply_mask(self, logits: Tensor, mask: Tensor, rows: Tensor) -> None:
        apply_mask(self.engine, logits, mask, rows)

    def sample(self, logits: Tensor, batch: SamplingBatch) -> Tensor:
        return sample(self.engine, logits, batch)


NOTHING = torch.empty(0, dtype=torch.int64)
PLACEHOLDER = RaggedBatch(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, page_size=1)
"""A recording op does not look at its batch."""
