"""The engine for scripts and notebooks: a model in this process, called synchronously."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import msgspec

from phloem.runtime.background import BackgroundLoop
from phloem.runtime.completion import Completion, collect
from phloem.runtime.config import DEFAULT_MODEL, EngineConfig
from phloem.runtime.errors import RequestError
from phloem.runtime.in_process import local_client
from phloem.runtime.local_request import Prompt, Sampling, make_request, token_ids
from phloem.runtime.local_session import LocalSession
from phloem.runtime.protocol import Delta, EngineStats, GenerateRequest
from phloem.runtime.sessions import Session

Messages = Sequence[Mapping[str, Any]]

_open: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Stop what computes before the interpreter, and the memory that it computes in, is gone."""
    for engine in list(_open):
        engine.close()


class Engine:
    """A loaded model with its own scheduler and prefix cache.

    ``options`` are the fields of ``EngineConfig``. Sampling parameters are a ``SamplingParams``
    or a mapping of its fields, in which one of ``json_schema``, ``regex``, ``ebnf`` and
    ``choices`` may constrain the output. Usable from several threads; ``client`` serves asyncio.

    Raises:
        ModelError: the model cannot be found, read or run.
        msgspec.ValidationError: an option is unknown or out of range.
    """

    def __init__(self, model: str = DEFAULT_MODEL, **options: Any) -> None:
        self._start(msgspec.convert({"model": model, **options}, EngineConfig))

    @classmethod
    def from_config(cls, config: EngineConfig) -> Engine:
        """The engine that a configuration describes."""
        engine = cls.__new__(cls)
        engine._start(config)
        return engine

    def _start(self, config: EngineConfig) -> None:
        self.client = local_client(config)
        self._loop = BackgroundLoop()
        self._closing = threading.Lock()
        _open.add(self)

    def generate(self, prompt: Prompt, sampling: Sampling = None) -> Completion:
        """Continue one prompt (text, or token ids).

        Raises:
            RequestError: the prompt or a parameter is invalid.
            GenerationError: the request failed.
        """
        return self._loop.run(self._complete(prompt, sampling))[0]

    def generate_n(self, prompt: Prompt, sampling: Sampling = None) -> list[Completion]:
        """All ``n`` continuations of one prompt."""
        return self._loop.run(self._complete(prompt, sampling))

    def generate_batch(
        self, prompts: Sequence[Prompt], sampling: Sampling = None
    ) -> list[Completion]:
        """Continue several prompts together; the first continuation of each."""

        async def gather() -> list[list[Completion]]:
            return await asyncio.gather(*(self._complete(prompt, sampling) for prompt in prompts))

        return [completions[0] for completions in self._loop.run(gather())]

    def stream(self, prompt: Prompt, sampling: Sampling = None) -> Iterator[Delta]:
        """The deltas of one prompt's continuations, as they are made."""
        request = self.request(prompt, sampling, stream=True)
        yield from self._loop.stream(self.client.generate(request))

    def chat(self, messages: Messages, sampling: Sampling = None) -> Completion:
        """Answer a conversation."""
        return self.generate(self.chat_prompt(messages), sampling)

    def chat_prompt(self, messages: Messages) -> list[int]:
        """A conversation as the model's chat template lays it out, up to the answer."""
        if not messages:
            raise RequestError("`messages` is empty", param="messages")
        tokenizer = self.client.tokenizer
        text = tokenizer.apply_chat_template([dict(message) for message in messages])
        return tokenizer.encode(text, add_special_tokens=False)

    def request(
        self, prompt: Prompt, sampling: Sampling = None, *, stream: bool = False
    ) -> GenerateRequest:
        """The request that ``generate`` would submit, or ``stream``."""
        ids = token_ids(self.client.tokenizer, prompt)
        return make_request(ids, sampling, stream=stream)

    def open_session(
        self, capacity: int | None = None, timeout: float | None = None
    ) -> LocalSession:
        """A conversation that keeps what was said, so that each call gives only what is new.

        ``capacity``: the most tokens that it and its branches may hold together. ``timeout``:
        seconds (600 by default) for which the cache keeps its tokens after each call.

        Raises:
            RequestError: one of them is out of its limits.
        """
        return LocalSession(self.client, self._loop, Session("", capacity, timeout))

    def stats(self) -> EngineStats:
        """Current counters."""
        return self._loop.run(self.client.stats())

    def flush_cache(self) -> bool:
        """Empty the prefix cache; False if requests are running."""
        return self._loop.run(self.client.flush_cache())

    def close(self) -> None:
        """Stop the engine and free its memory; calls that wait raise EngineDeadError.

        Nothing in a child of the process that made it. What is open at the end of a process is
        closed then.
        """
        with self._closing:
            if not self._loop.is_closed:
                self.client.close()
                self._loop.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def _complete(self, prompt: Prompt, sampling: Sampling) -> list[Completion]:
        request = self.request(prompt, sampling)
        return await collect(self.client.generate(request), request.sampling.n)
