"""Which forms of each value are kept, and in which buffers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from phloem.kernels.native.library import BF16, F32, I8, I16
from phloem.kernels.native.tape import (
    Attention,
    Convert,
    Gate,
    GatedLinear,
    Instruction,
    Linear,
    Logits,
    Norm,
    View,
    reads,
    touches,
)

WRITE_ANY_FORM = Norm, Gate, GatedLinear, Attention, Convert


def input_form(instruction: Instruction, exact: bool) -> int:
    """The form in which an instruction reads.

    Rounding the head's inputs to 8 bits would cost as much as all other rounding together, and
    it is computed for few rows: it reads 16 bits.
    """
    if not isinstance(instruction, Linear | GatedLinear | Logits):
        return F32
    if instruction.matrix.kind == "BF16":
        return BF16
    if exact or not instruction.matrix.is_quantized:
        return F32
    return I16 if isinstance(instruction, Logits) else I8


def convert_where_needed(
    instructions: Sequence[Instruction], widths: list[int], exact: bool
) -> list[Instruction]:
    """Put a Convert before each instruction that reads a form which the value's writer lacks.

    ``widths`` grows by the new values.
    """
    whole = written_in_all_forms(instructions, widths)
    complete: list[Instruction] = []
    converted: dict[View, View] = {}
    for instruction in instructions:
        if isinstance(instruction, Linear | GatedLinear | Logits):
            view = instruction.x
            if input_form(instruction, exact) != F32 and view not in whole:
                if view not in converted:
                    converted[view] = View(len(widths), 0, view.width)
                    widths.append(view.width)
                    complete.append(Convert(view, converted[view]))
                instruction = replace(instruction, x=converted[view])
        complete.append(instruction)
        if not isinstance(instruction, Logits):
            changed = instruction.out.value
            converted = {view: new for view, new in converted.items() if view.value != changed}
    return complete


def written_in_all_forms(instructions: Sequence[Instruction], widths: Sequence[int]) -> set[View]:
    """Whole values that one instruction writes, in whatever forms are wanted."""
    writers = [each for each in instructions if not isinstance(each, Logits)]
    times = Counter(each.out.value for each in writers)
    return {
        View(each.out.value, 0, widths[each.out.value])
        for each in writers
        if isinstance(each, WRITE_ANY_FORM) and not is_by_heads(each) and times[each.out.value] == 1
    }


def is_by_heads(instruction: Instruction) -> bool:
    """Whether it normalises parts of a row, which it writes as floats only."""
    return isinstance(instruction, Norm) and instruction.size != instruction.x.width


def wanted_forms(instructions: Sequence[Instruction], exact: bool) -> dict[int, set[int]]:
    """The forms of each value that somebody reads, or that its writer needs."""
    wanted: defaultdict[int, set[int]] = defaultdict(set)
    for instruction in instructions:
        for view in reads(instruction):
            form = input_form(instruction, exact)
            adds_in_place = isinstance(instruction, Linear) and view == instruction.out
            wanted[view.value].add(F32 if adds_in_place else form)
        if isinstance(instruction, Attention):  # its parts meet as floats
            wanted[instruction.out.value].add(F32)
    return wanted


@dataclass(slots=True)
class Buffers:
    """Buffers by (value, form); a buffer is used again once its value was read for the last time.

    Attributes:
        rows: bytes of a row of each buffer, in the order of their numbers.
        at: the buffer of each value and form.
    """

    rows: list[int] = field(default_factory=list)
    at: dict[tuple[int, int], int] = field(default_factory=dict)
    _free: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def take(self, value: int, form: int, row: int) -> None:
        free = self._free[row]
        if free:
            self.at[value, form] = free.pop()
            return
        self.at[value, form] = len(self.rows)
        self.rows.append(row)

    def release(self, value: int, form: int) -> None:
        buffer = self.at[value, form]
        self._free[self.rows[buffer]].append(buffer)


def last_reads(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Value -> index of the instruction that touches it last."""
    last: dict[int, int] = {}
    for index, instruction in enumerate(instructions):
        last.update(dict.fromkeys(touches(instruction), index))
    return last
