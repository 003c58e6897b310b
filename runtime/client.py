"""The public client protocol: what anything outside the engine may ask of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from phloem.runtime.protocol import Delta, EngineStats, GenerateRequest, ModelInfo
    from phloem.runtime.text.tokenizer import Tokenizer


class Client(Protocol):
    """A running engine, in this process or behind a socket."""

    @property
    def info(self) -> ModelInfo:
        """The served model."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The served model's tokenizer."""

    @property
    def healthy(self) -> bool:
        """False once the engine died."""

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """Submit ``request`` and yield its deltas until each of its ``n`` sequences finished.

        Closing the iterator early aborts the request. A request that fails yields a delta with
        ``finish.reason == "error"``.

        Raises (at the first ``__anext__``):
            RequestError: a field is invalid (checked before anything is queued).
            OverloadedError: the queue is full.
            EngineDeadError: the engine died, now or while the request ran.
        """

    async def abort(self, rid: str) -> bool:
        """End the request with ``finish.reason == "abort"``; False if it is not known."""

    async def flush_cache(self) -> bool:
        """Empty the prefix cache; False if requests are running."""

    async def stats(self) -> EngineStats:
        """Current counters."""
