"""Events in the shape that vLLM and SGLang publish, so that their routers understand them.

They are msgpack arrays: ``[ts, [event, ...]]`` for a batch, and for an event its name and fields.
A block is a page; its hash, an unsigned number of 64 bits, covers all tokens up to its end.
"""

from __future__ import annotations

import msgspec

MEDIUM = "GPU"
"""What the engine computes from, whatever device that is: routers know this name."""


class Event(msgspec.Struct, array_like=True, gc=False, tag=True):
    """Something that happened to blocks."""


class BlockStored(Event):
    """Blocks that follow each other are in the cache; their tokens, in order.

    ``parent_block_hash`` is None if the first of them begins a sequence.
    """

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None


class BlockRemoved(Event):
    """Blocks that are not in the cache any more."""

    block_hashes: list[int]
    medium: str | None = None


class AllBlocksCleared(Event):
    """The cache is empty."""


class EventBatch(msgspec.Struct, array_like=True, gc=False):
    """The events of one step; ``ts`` in seconds since 1970."""

    ts: float
    events: list[Event]
