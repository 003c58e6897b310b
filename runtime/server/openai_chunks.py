"""Chunks of OpenAI's streams from byte templates: per token, only the token's part is encoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Delta
from phloem.runtime.server.openai_types import Head, PromptTokensDetails, StreamOptions, Usage
from phloem.runtime.server.replies import encode, event


def finish_reason(completion: Completion) -> str | None:
    return None if completion.finish is None else completion.finish.reason


def usage_of(firsts: Iterable[Delta | Completion], completion_tokens: int) -> Usage:
    """``firsts``: the first sequence of each prompt, so that a prompt counts once."""
    prompt = cached = 0
    for first in firsts:
        prompt += first.prompt_tokens
        cached += first.cached_tokens
    return Usage(prompt, completion_tokens, prompt + completion_tokens, PromptTokensDetails(cached))


def total_usage(completions: Sequence[Completion], starts: Sequence[int]) -> Usage:
    """The usage of a finished batch; ``starts`` as in ``Batch``."""
    generated = sum(len(completion.token_ids) for completion in completions)
    return usage_of((completions[slot] for slot in starts[:-1]), generated)


class Chunks:
    """Frames the chunks of one stream and keeps its usage."""

    def __init__(self, head: Head, slots: int, options: StreamOptions | None) -> None:
        self._head = encode(head)[:-1] + b',"choices":['
        self._begin = [b'data: %s{"index":%d,' % (self._head, slot) for slot in range(slots)]
        self._usage_wanted = options is not None and bool(options.include_usage)
        self._continuous = options is not None and bool(options.continuous_usage_stats)
        self._end = b'}],"usage":null}\n\n' if self._usage_wanted else b"}]}\n\n"
        self._latest: dict[int, Delta] = {}

    def see(self, slot: int, delta: Delta) -> bool:
        """Count ``delta``; True if it is the slot's first."""
        first = slot not in self._latest
        self._latest[slot] = delta
        if self._continuous:
            self._end = b'}],"usage":%s}\n\n' % self._usage()
        return first

    def chunk(self, slot: int, choice: bytes) -> bytes:
        """The event whose choice has these members besides its index."""
        return self._begin[slot] + choice + self._end

    def tail(self) -> bytes:
        """The usage chunk, if it was asked for."""
        if not self._usage_wanted:
            return b""
        return event(self._head + b'],"usage":%s}' % self._usage())

    def _usage(self) -> bytes:
        firsts = [delta for delta in self._latest.values() if delta.index == 0]
        generated = sum(delta.completion_tokens for delta in self._latest.values())
        return encode(usage_of(firsts, generated))
