"""A tape as a program of the library, and its replay."""

from __future__ import annotations

from ctypes import byref, c_double
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.native import tape
from phloem.kernels.native.engine import Matrix, NativeEngine, own
from phloem.kernels.native.fuse import fuse
from phloem.kernels.native.kv import kv_pages
from phloem.kernels.native.layout import (
    Buffers,
    convert_where_needed,
    input_form,
    last_reads,
    wanted_forms,
)
from phloem.kernels.native.library import F32, FORMS, Inputs, Operand, ValueForms
from phloem.kernels.native.tape import Instruction, Tape, View

GATES = {"silu": 0, "gelu": 1}


@dataclass(frozen=True, slots=True)
class OpTime:
    """Seconds that one instruction of a program took."""

    name: str
    seconds: float


class Program:
    """The recorded step: one call into the library computes it.

    ``exact`` keeps activations in float32 where weights are quantised.
    """

    def __init__(self, engine: NativeEngine, tape: Tape, *, exact: bool) -> None:
        self._engine = engine
        self._library = engine.library
        self._exact = exact
        self._handle = own(
            self, self._library.program_new(engine.handle), self._library.program_free
        )
        self._widths = list(tape.widths)
        fused = fuse(tape.instructions, self._widths)
        self._instructions = convert_where_needed(fused, self._widths, exact)
        self._wanted = wanted_forms(self._instructions, exact)
        self._buffers = self._allocate()
        for row in self._buffers.rows:
            self._library.program_buffer(self._handle, row, 0)
        self._keep: list[Any] = []
        for instruction in self._instructions:
            self._add(instruction)
        self._logits = torch.empty(0, self.vocabulary)

    def run(self, token_ids: Tensor, batch: RaggedBatch, rows: Tensor) -> Tensor:
        """Compute the step; float32 [L, V], valid until the next run."""
        wanted = rows.shape[0]
        logits = self._take_logits(wanted)
        inputs = Inputs(
            tokens=token_ids.shape[0],
            requests=batch.kv_len.shape[0],
            rows=wanted,
            token_ids=token_ids.data_ptr(),
            positions=batch.positions.data_ptr(),
            slots=batch.slots.data_ptr(),
            query_start=batch.query_start.data_ptr(),
            kv_len=batch.kv_len.data_ptr(),
            page_table=batch.page_table.data_ptr(),
            page_table_width=batch.page_table.shape[1],
            logit_rows=rows.data_ptr(),
            logits=logits.data_ptr(),
            vocabulary=self.vocabulary,
        )
        self._engine.check(self._library.program_run(self._handle, byref(inputs)), -1)
        return logits

    def matrices(self) -> list[Matrix]:
        """The weights that a step multiplies with, each once, the head last."""
        found = (getattr(each, "matrix", None) for each in self._instructions)
        return list(dict.fromkeys(matrix for matrix in found if matrix is not None))

    @property
    def vocabulary(self) -> int:
        """Columns of the logits; 0 for a program without any."""
        last = self._instructions[-1]
        return last.matrix.rows if isinstance(last, tape.Logits) else 0

    def profile(self, on: bool) -> None:
        """Start (and forget what was measured) or stop measuring each instruction by itself."""
        self._library.program_profile(self._handle, int(on))

    def times(self) -> list[OpTime]:
        """What the instructions took since profiling was started."""
        count = self._library.program_ops(self._handle)
        seconds = (c_double * count)()
        self._library.program_seconds(self._handle, seconds)
        names = (self._library.program_op(self._handle, i).decode() for i in range(count))
        return [OpTime(*each) for each in zip(names, seconds, strict=True)]

    def read(self, view: View, rows: int) -> Tensor:
        """The floats of a value that is still in its buffer after a run, [rows, width]."""
        values = torch.empty(rows, view.width)
        at = self._operand(view)
        self._library.program_read(self._handle, byref(at), rows, view.width * 4, values.data_ptr())
        return values

    def _take_logits(self, rows: int) -> Tensor:
        """Rows of a buffer that only grows: touching new memory costs more than writing it."""
        if rows > self._logits.shape[0]:
            self._logits = torch.empty(rows, self.vocabulary)
        return self._logits[:rows]

    # Buffers

    def _allocate(self) -> Buffers:
        buffers, last = Buffers(), last_reads(self._instructions)
        for index, instruction in enumerate(self._instructions):
            if not isinstance(instruction, tape.Logits):
                value = instruction.out.value
                for form in self._wanted[value] or {F32}:
                    if (value, form) not in buffers.at:
                        buffers.take(value, form, self._row(form, self._widths[value]))
            for value in tape.touches(instruction):
                if last[value] == index:
                    for form in range(FORMS):
                        if (value, form) in buffers.at:
                            buffers.release(value, form)
        return buffers

    def _row(self, form: int, width: int) -> int:
        return int(self._library.row_bytes(form, width))

    def _operand(self, view: View, form: int = F32) -> Operand:
        buffer = self._buffers.at[view.value, form]
        return Operand(buffer, view.column * 4)

    def _forms(self, view: View) -> ValueForms:
        """All forms of a whole value."""
        at = self._buffers.at
        forms = (Operand(at.get((view.value, form), -1), 0) for form in range(FORMS))
        return ValueForms((Operand * FORMS)(*forms))

    # Instructions

    def _pointer(self, tensor: Tensor | None) -> int | None:
        """Where a float32 tensor lies, which is kept alive."""
        if tensor is None:
            return None
        floats = tensor.float().contiguous()
        self._keep.append(floats)
        return floats.data_ptr()

    def _call(self, name: str, *arguments: Any) -> None:
        getattr(self._library, f"add_{name}")(self._handle, *arguments)

    @singledispatchmethod
    def _add(self, instruction: Instruction) -> None:
        raise TypeError(f"{type(instruction).__name__} is not an instruction")

    @_add.register
    def _(self, each: tape.Embedding) -> None:
        self._keep.append(each.table)
        self._call("embedding", each.table.handle, each.scale, self._operand(each.out))

    @_add.register
    def _(self, each: tape.Norm) -> None:
        groups, weight = each.x.width // each.size, self._pointer(each.weight)
        self._call(
            "norm",
            self._operand(each.x),
            groups,
            each.size,
            weight,
            each.eps,
            self._forms(each.out),
        )

    @_add.register
    def _(self, each: tape.Add) -> None:
        self._call(
            "add",
            self._operand(each.x),
            self._operand(each.y),
            each.x.width,
            self._operand(each.out),
        )

    @_add.register
    def _(self, each: tape.Convert) -> None:
        self._call("convert", self._operand(each.x), each.x.width, self._forms(each.out))

    @_add.register
    def _(self, each: tape.Linear) -> None:
        self._keep.append(each.matrix)
        form = input_form(each, self._exact)
        self._call(
            "linear", each.matrix.handle, self._pointer(each.bias), form,
            self._operand(each.x, form), self._operand(each.out), int(each.add),
        )  # fmt: skip

    @_add.register
    def _(self, each: tape.Gate) -> None:
        self._call(
            "gate", self._operand(each.x), each.out.width, GATES[each.kind], self._forms(each.out)
        )

    @_add.register
    def _(self, each: tape.GatedLinear) -> None:
        self._keep.append(each.matrix)
        form = input_form(each, self._exact)
        self._call(
            "gated_linear", each.matrix.handle, self._pointer(each.bias), form,
            self._operand(each.x, form), GATES[each.kind], self._forms(each.out),
        )  # fmt: skip

    @_add.register
    def _(self, each: tape.RopeAndCache) -> None:
        self._keep.append(each.kv)
        operands = (self._operand(view) for view in (each.q, each.k, each.v))
        half, heads = each.table.shape[-1], each.q.width // each.size
        self._call(
            "rope", *operands, self._pointer(each.table), half, heads,
            kv_pages(each.kv, each.size), self._operand(each.out),
        )  # fmt: skip

    @_add.register
    def _(self, each: tape.Attention) -> None:
        self._keep.append(each.kv)
        heads, pages = each.q.width // each.size, kv_pages(each.kv, each.size)
        self._call(
            "attention", self._operand(each.q), heads, pages, each.scale,
            each.window or 0, each.softcap or 0.0, self._forms(each.out),
        )  # fmt: skip

    @_add.register
    def _(self, each: tape.Logits) -> None:
        self._keep.append(each.matrix)
        form = input_form(each, self._exact)
        row = self._row(form, each.x.width)
        gathered = Operand(self._library.program_buffer(self._handle, row, 1), 0)
        self._call(
            "logits", self._operand(each.x, form), row, each.matrix.handle,
            self._pointer(each.bias), form, gathered, each.softcap or 0.0,
        )  # fmt: skip
