"""Where the rows of a ragged batch sit in the paged KV cache."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """R requests with T query tokens in all; request r owns rows query_start[r]:query_start[r+1].

    A request's queries are the last ``query_len`` of its ``kv_len`` tokens, so row i of request
    r has position ``kv_len[r] - query_len[r] + i`` and attends to the keys at positions up to
    and including its own. Keys live in pages: token p of request r is at page
    ``page_table[r, p // page_size]``, offset ``p % page_size``. What lies in pages beyond a
    request's keys is never read as a number; it may be nan.

    A batch is not changed once it was used: an implementation may keep what it derived from it.

    Attributes:
        positions: int64 [T], position of each query token in its request.
        slots: int64 [T], page * page_size + offset that each token's K and V are written to.
        query_start: int32 [R + 1].
        kv_len: int32 [R], length after this step's writes (so it counts the queries).
        page_table: int32 [R, P], padded at the right with any valid page id.
        page_size: tokens per page.
    """

    positions: Tensor
    slots: Tensor
    query_start: Tensor
    kv_len: Tensor
    page_table: Tensor
    page_size: int
