"""Rewriting a tape so that fewer and larger instructions do the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from phloem.kernels.native.tape import (
    Add,
    Gate,
    GatedLinear,
    Instruction,
    Linear,
    View,
    reads,
)

BLOCK = 32


def fuse(instructions: Sequence[Instruction], widths: Sequence[int]) -> list[Instruction]:
    """Gated activations with the maps before them, residual additions with the maps they follow.

    ``widths`` are those of the values.
    """
    return fuse_residuals(fuse_gates(list(instructions)), widths)


def fuse_gates(instructions: list[Instruction]) -> list[Instruction]:
    """Linear, then Gate of its result: one GatedLinear, whose products never leave the cache."""
    uses = count_uses(instructions)
    fused: list[Instruction] = []
    for instruction in instructions:
        before = fused[-1] if fused else None
        if (
            isinstance(instruction, Gate)
            and isinstance(before, Linear)
            and before.out == instruction.x
            and uses[before.out.value] == 1
            and instruction.out.width % BLOCK == 0
        ):
            fused[-1] = GatedLinear(
                before.x, before.matrix, before.bias, instruction.kind, instruction.out
            )
        else:
            fused.append(instruction)
    return fused


def fuse_residuals(instructions: list[Instruction], widths: Sequence[int]) -> list[Instruction]:
    """Linear, then Add of its result to a value that nobody needs any more: add in place."""
    uses = count_uses(instructions)
    fused: list[Instruction] = []
    renamed: dict[int, int] = {}
    for original in instructions:
        instruction = rename(original, renamed)
        uses.subtract(view.value for view in reads(original))
        before = fused[-1] if fused else None
        if (
            isinstance(instruction, Add)
            and isinstance(original, Add)
            and isinstance(before, Linear)
            and before.out == instruction.x
            and uses[original.x.value] == uses[original.y.value] == 0
            and instruction.y.value not in (before.out.value, before.x.value)
            and instruction.y.width == widths[instruction.y.value]
        ):
            fused[-1] = replace(before, out=instruction.y, add=True)
            renamed[original.out.value] = instruction.y.value
        else:
            fused.append(instruction)
    return fused


def count_uses(instructions: Sequence[Instruction]) -> Counter[int]:
    """How often each value is read."""
    return Counter(view.value for each in instructions for view in reads(each))


def rename(instruction: Instruction, names: dict[int, int]) -> Instruction:
    """The instruction on other values."""
    changes: dict[str, Any] = {
        field.name: replace(view, value=names[view.value])
        for field in fields(instruction)
        if isinstance(view := getattr(instruction, field.name), View) and view.value in names
    }
    return replace(instruction, **changes) if changes else instruction
