"""The engine for scripts and notebooks: a model in this process, called synchronously."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from phloem.runtime.completion import Completion, as_exception, collect
from phloem.runtime.config import DEFAULT_MODEL, EngineConfig
from phloem.runtime.errors import EngineDeadError, RequestError
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import Delta, EngineStats, GenerateRequest, SamplingParams
from phloem.runtime.sampling.fields import sampling_params

T = TypeVar("T")
Prompt = str | Sequence[int]
Sampling = SamplingParams | Mapping[str, Any] | None
Messages = Sequence[Mapping[str, Any]]


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
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def generate(self, prompt: Prompt, sampling: Sampling = None) -> Completion:
        """Continue one prompt (text, or token ids).

        Raises:
            RequestError: the prompt or a parameter is invalid.
            GenerationError: the request failed.
        """
        return self._run(self._complete(prompt, sampling))[0]

    def generate_n(self, prompt: Prompt, sampling: Sampling = None) -> list[Completion]:
        """All ``n`` continuations of one prompt."""
        return self._run(self._complete(prompt, sampling))

    def generate_batch(
        self, prompts: Sequence[Prompt], sampling: Sampling = None
    ) -> list[Completion]:
        """Continue several prompts together; the first continuation of each."""

        async def gather() -> list[list[Completion]]:
            return await asyncio.gather(*(self._complete(prompt, sampling) for prompt in prompts))

        return [completions[0] for completions in self._run(gather())]

    def stream(self, prompt: Prompt, sampling: Sampling = None) -> Iterator[Delta]:
        """The deltas of one prompt's continuations, as they are made."""
        deltas = self.client.generate(self.request(prompt, sampling, stream=True))
        try:
            while (delta := self._run(advance(deltas))) is not None:
                if delta.finish is not None and delta.finish.error is not None:
                    raise as_exception(delta.finish.error)
                yield delta
        finally:
            self._run(close(deltas))

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
        params = sampling if isinstance(sampling, SamplingParams) else sampling_params(sampling)
        ids = self._encode(prompt)
        return GenerateRequest(rid=uuid.uuid4().hex, input_ids=ids, sampling=params, stream=stream)

    def _encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self.client.tokenizer.encode(prompt)
        if isinstance(prompt, Sequence):
            ids = [token for token in prompt if isinstance(token, int)]
            if len(ids) == len(prompt):
                return ids
        raise RequestError("a prompt is text or a list of token ids", param="prompt")

    def stats(self) -> EngineStats:
        """Current counters."""
        return self._run(self.client.stats())

    def flush_cache(self) -> bool:
        """Empty the prefix cache; False if requests are running."""
        return self._run(self.client.flush_cache())

    def close(self) -> None:
        """Stop the engine and free its memory."""
        if self._loop.is_closed():
            return
        self.client.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
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

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise EngineDeadError("the engine was shut down")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def advance(deltas: AsyncIterator[Delta]) -> Delta | None:
    return await anext(deltas, None)


async def close(deltas: AsyncGenerator[Delta, None]) -> None:
    """Leave a stream, early perhaps; then its request is aborted."""
    await deltas.aclose()
