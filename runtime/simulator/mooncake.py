"""Traces in the format of Mooncake (Qin et al., FAST 2025), which also Dynamo and AIPerf read.

JSON lines with ``timestamp`` (milliseconds), ``input_length`` and ``output_length`` (tokens) and
``hash_ids``: a number for each block of 512 prompt tokens and all before it, so that equal leading
numbers are a shared prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from phloem.runtime.simulator.trace import Call, Segment

BLOCK = 512
FIRST_OUTPUT = 1 << 31
"""Streams of outputs are numbered from here; hashes are small numbers."""


class Line(msgspec.Struct, frozen=True):
    """One request, as it stands in the file."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: list[int]


def read_mooncake(path: Path) -> Iterator[Call]:
    """The requests in the file's order, which is that of time.

    Raises:
        msgspec.DecodeError: a line is no such object.
        ValueError: a line has not as many hashes as blocks.
    """
    decoder = msgspec.json.Decoder(Line)
    with path.open("rb") as file:
        for number, text in enumerate(file):
            line = decoder.decode(text)
            output = Segment(FIRST_OUTPUT + number, max(line.output_length, 1))
            yield Call(line.timestamp / 1000, tuple(blocks(line, number)), output)


def blocks(line: Line, number: int) -> Iterator[Segment]:
    """The prompt: whole blocks, the last one cut to the prompt's length."""
    wanted = -(-line.input_length // BLOCK)
    if line.input_length < 1 or len(line.hash_ids) != wanted:
        raise ValueError(
            f"line {number + 1}: {len(line.hash_ids)} hash_ids for {line.input_length} tokens"
        )
    for index, hash_id in enumerate(line.hash_ids):
        yield Segment(hash_id, min(BLOCK, line.input_length - index * BLOCK))
