"""What a model does in one step, written down: instructions over values.

A model runs once on placeholders, tensors with one row whose numbers nobody looks at. Each op
hands out a new placeholder and writes an instruction. Views of a placeholder (a split of q, k and
v, the heads of a row) are recognised by the memory that they share with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from phloem.kernels.native.engine import Matrix
from phloem.kernels.ops import KVLayer


@dataclass(frozen=True, slots=True)
class View:
    """Part of the rows of a value: ``width`` floats from ``column`` on."""

    value: int
    column: int
    width: int


@dataclass(frozen=True, slots=True)
class Embedding:
    table: Matrix
    scale: float
    out: View


@dataclass(frozen=True, slots=True)
class Norm:
    x: View
    size: int
    """Floats that are normalised together; a view holds one stretch of them or several."""
    weight: Tensor
    eps: float
    out: View


@dataclass(frozen=True, slots=True)
class Add:
    x: View
    y: View
    out: View


@dataclass(frozen=True, slots=True)
class Convert:
    """Brings a value to the forms that its readers want."""

    x: View
    out: View


@dataclass(frozen=True, slots=True)
class Linear:
    x: View
    matrix: Matrix
    bias: Tensor | None
    out: View
    add: bool = False
    """Whether to add to ``out`` rather than to write it."""


@dataclass(frozen=True, slots=True)
class Gate:
    x: View
    kind: str
    out: View


@dataclass(frozen=True, slots=True)
class GatedLinear:
    x: View
    matrix: Matrix
    bias: Tensor | None
    kind: str
    out: View


@dataclass(frozen=True, slots=True)
class RopeAndCache:
    q: View
    k: View
    v: View
    size: int
    table: Tensor
    kv: KVLayer
    out: View


@dataclass(frozen=True, slots=True)
class Attention:
    q: View
    size: int
    kv: KVLayer
    scale: float
    window: int | None
    softcap: float | None
    out: View


@dataclass(frozen=True, slots=True)
class Logits:
    x: View
    matrix: Matrix
    bias: Tensor | None
    softcap: float | None


Instruction = (
    Embedding
    | Norm
    | Add
    | Convert
    | Linear
    | Gate
    | GatedLinear
    | RopeAndCache
    | Attention
    | Logits
)


def reads(instruction: Instruction) -> Iterator[View]:
    """The views that an instruction reads."""
    for field in fields(instruction):
        part = getattr(instruction, field.name)
        if isinstance(part, View) and field.name != "out":
            yield part
    if isinstance(instruction, Linear) and instruction.add:
        yield instruction.out


def touches(instruction: Instruction) -> set[int]:
    """The values that an instruction reads or writes."""
    views = [*reads(instruction)]
    if not isinstance(instruction, Logits):
        views.append(instruction.out)
    return {view.value for view in views}


class Tape:
    """The instructions so far, and the placeholders of their values."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.widths: list[int] = []
        self._placeholders: list[Tensor] = []
        self._value_at: dict[int, int] = {}

    def new(self, *shape: int) -> Tensor:
        """The placeholder [1, *shape] of a new value."""
        placeholder = torch.empty(1, *shape)
        self._value_at[placeholder.untyped_storage().data_ptr()] = len(self.widths)
        self.widths.append(placeholder.numel())
        self._placeholders.append(placeholder)
        return placeholder

    def view(self, x: Tensor) -> View:
        """The value that ``x`` is, or is a part of.

        Raises:
            ValueError: it is not made of the step's values, or its columns are not side by side.
        """
        value = self._value_at.get(x.untyped_storage().data_ptr())
        if value is None or len(x) != 1 or not x[0].is_contiguous():
            raise ValueError("a recorded op reads values of recorded ops, and whole rows of them")
        return View(value, int(x.storage_offset()), x.numel())

    def write(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)
