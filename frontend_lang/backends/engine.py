"""Programs on an engine, in this process or behind a socket, through the client protocol."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from phloem.frontend_lang.backends.base import Call, Completion, OnText
from phloem.runtime import completion
from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Delta, GenerateRequest, SamplingParams, TokenLogprob

if TYPE_CHECKING:
    from phloem.runtime.client import Client
    from phloem.runtime.text.roles import RoleAffixes
    from phloem.runtime.text.tokenizer import Tokenizer


class EngineBackend:
    """A ``Backend`` over a runtime client.

    Programs share cached prefixes only with requests of the same ``cache_salt`` and
    ``extra_key``.
    """

    def __init__(self, client: Client, *, cache_salt: str = "", extra_key: str = "") -> None:
        self._client = client
        self._cache_salt = cache_salt
        self._extra_key = extra_key

    async def affixes(self) -> RoleAffixes:
        """See ``Backend.affixes``."""
        return _affixes_of(self._client.tokenizer)

    async def encode(self, text: str) -> list[int]:
        """See ``Backend.encode``."""
        tokenizer = self._client.tokenizer
        # A chat template may write the BOS token out that the tokenizer would add.
        ids = tokenizer.encode(text, add_special_tokens=not self._starts_with_bos(text))
        if ids:
            return ids
        starts = [tokenizer.bos_token_id, *tokenizer.eos_token_ids]
        if anchor := [token for token in starts if token is not None][:1]:
            return anchor
        raise RequestError("the model has no token to start from; add text first", param="text")

    async def generate(self, call: Call, on_text: OnText | None = None) -> list[Completion]:
        """See ``Backend.generate``."""
        request = self._request(
            await self.encode(call.prompt),
            call.sampling,
            return_logprob=call.return_logprob,
            logprob_start=call.logprob_start,
            top_logprobs=call.top_logprobs,
            program=call.program,
            stream=on_text is not None,
        )
        deltas = self._client.generate(request)
        seen = deltas if on_text is None else _published(deltas, on_text)
        done = await completion.collect(seen, request.sampling.n)
        return [Completion(each.text, self._meta(request, each)) for each in done]

    async def score(self, input_ids: list[int], start: int) -> list[float]:
        """See ``Backend.score``."""
        request = self._request(
            input_ids, SamplingParams(max_new_tokens=0), return_logprob=True, logprob_start=start
        )
        (done,) = await completion.collect(self._client.generate(request), 1)
        return [each.logprob for each in done.prompt_logprobs if each.logprob is not None]

    async def flush_cache(self) -> bool:
        """See ``Backend.flush_cache``."""
        return await self._client.flush_cache()

    def _request(self, ids: list[int], sampling: SamplingParams, **rest: Any) -> GenerateRequest:
        return GenerateRequest(
            rid=uuid.uuid4().hex,
            input_ids=ids,
            sampling=sampling,
            cache_salt=self._cache_salt,
            extra_key=self._extra_key,
            **rest,
        )

    def _starts_with_bos(self, text: str) -> bool:
        bos = self._client.tokenizer.bos_token_id
        return bos is not None and text.startswith(self._client.tokenizer.token_text(bos))

    def _meta(self, request: GenerateRequest, done: completion.Completion) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "id": request.rid,
            "finish_reason": _finish_reason(done),
            "prompt_tokens": done.prompt_tokens,
            "completion_tokens": len(done.token_ids),
            "cached_tokens": done.cached_tokens,
        }
        if request.return_logprob:
            meta["output_token_logprobs"] = self._logprobs(done.logprobs)
            meta["input_token_logprobs"] = self._logprobs(done.prompt_logprobs)
        if request.top_logprobs:
            meta["output_top_logprobs"] = [self._top(each) for each in done.logprobs]
            meta["input_top_logprobs"] = [self._top(each) for each in done.prompt_logprobs]
        return meta

    def _logprobs(self, tokens: list[TokenLogprob]) -> list[tuple[float | None, int, str]]:
        return [(each.logprob, each.token_id, self._text(each.token_id)) for each in tokens]

    def _top(self, token: TokenLogprob) -> list[tuple[float, int, str]]:
        return [(logprob, token_id, self._text(token_id)) for token_id, logprob in token.top]

    def _text(self, token_id: int) -> str:
        return self._client.tokenizer.token_text(token_id)


@lru_cache(maxsize=8)
def _affixes_of(tokenizer: Tokenizer) -> RoleAffixes:
    """Kept, since it takes the template some forty renderings to find out."""
    from phloem.runtime.text.roles import role_affixes

    return role_affixes(tokenizer)


async def _published(deltas: AsyncIterator[Delta], on_text: OnText) -> AsyncIterator[Delta]:
    """``deltas``, with the first sequence's text handed to ``on_text``."""
    async for delta in deltas:
        if delta.index == 0:
            on_text(delta.text)
        yield delta


def _finish_reason(done: completion.Completion) -> dict[str, Any] | None:
    if done.finish is None:
        return None
    return {"type": done.finish.reason, "matched": done.finish.matched}
