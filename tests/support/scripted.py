"""A model that says what a script tells it to, behind the runtime's client protocol.

A deterministic language model over a real tokenizer: after a text it gives the token that
continues the script probability 0.9 and shares the rest evenly. So what a program asks and what
comes of it are both known exactly. Scripts are in ASCII.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import regex

from phloem.runtime.protocol import (
    Constraint,
    Delta,
    EngineStats,
    Finish,
    GenerateRequest,
    ModelInfo,
    TokenLogprob,
)
from phloem.runtime.text.stop import StopMatcher
from phloem.runtime.text.tokenizer import Tokenizer
from phloem.runtime.validation import validate

Reply = Callable[[str, int], str]
"""What the model wants to say after a text, in the request's sequence of the given index."""

LIKELY = 0.9


def script(cues: Mapping[str, str | list[str] | Exception]) -> Reply:
    """Answer the cue that ends last in the text: one answer, one by index, or an error."""

    def reply(text: str, index: int) -> str:
        found = [(text.rfind(cue) + len(cue), len(cue), cue) for cue in cues if cue in text]
        if not found:
            return ""
        at, _, cue = max(found)
        answer = cues[cue]
        if isinstance(answer, Exception):
            raise answer
        answer = answer[index] if isinstance(answer, list) else answer
        return answer.removeprefix(text[at:]) if answer.startswith(text[at:]) else ""

    return reply


class ScriptedClient:
    """A ``phloem.runtime.client.Client`` that keeps the requests it received."""

    healthy = True

    def __init__(self, tokenizer: Tokenizer, reply: Reply) -> None:
        self.tokenizer = tokenizer
        self.requests: list[GenerateRequest] = []
        self.aborted: list[str] = []
        self.flushed = 0
        self._reply = reply
        self.info = ModelInfo(
            name="scripted",
            path="",
            architecture="scripted",
            context_length=4096,
            max_request_tokens=4096,
            vocab_size=tokenizer.vocab_size,
            eos_token_ids=tokenizer.eos_token_ids,
            dtype="float32",
            device="cpu",
        )

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Delta]:
        validate(request, self.info)
        self.requests.append(request)
        done = False
        try:
            for index in range(request.sampling.n):
                async for delta in self._sequence(request, index):
                    yield delta
            done = True
        finally:
            if not done:
                self.aborted.append(request.rid)

    async def abort(self, rid: str) -> bool:
        return False

    async def flush_cache(self) -> bool:
        self.flushed += 1
        return True

    async def stats(self) -> EngineStats:
        return EngineStats()

    async def _sequence(self, request: GenerateRequest, index: int) -> AsyncIterator[Delta]:
        sampling, ids = request.sampling, list(request.input_ids)
        stops = StopMatcher(sampling.stop, sampling.stop_regex)
        count, finish, prompt = 0, None, self._prompt_logprobs(request, index)
        while finish is None:
            await asyncio.sleep(0)
            token = self._next(ids, len(request.input_ids), index, sampling.constraint)
            if count == sampling.max_new_tokens:
                finish, text, tokens = Finish(reason="length"), stops.flush(), []
            elif token in self.info.eos_token_ids:
                count, tokens = count + 1, [token]
                finish, text = Finish(reason="stop", matched=token), stops.flush()
            else:
                count, tokens = count + 1, [token]
                result = stops.push(self.tokenizer.decode(tokens))
                text = result.text
                if result.matched is not None:
                    finish = Finish(reason="stop", matched=result.matched)
            yield Delta(
                rid=request.rid,
                index=index,
                text=text,
                token_ids=tokens,
                logprobs=[self._logprob(ids, each, index) for each in tokens],
                prompt_logprobs=prompt,
                prompt_tokens=len(request.input_ids),
                completion_tokens=count,
                finish=finish,
            )
            ids += tokens
            prompt = []

    def _next(self, ids: list[int], start: int, index: int, constraint: Constraint | None) -> int:
        wanted = self._wanted(ids, index)
        if constraint is None:
            return wanted
        said = self.tokenizer.decode(ids[start:])
        if wanted in self.info.eos_token_ids and regex.fullmatch(constraint.text, said):
            return wanted
        for token in (wanted, *range(self.info.vocab_size)):
            piece = self.tokenizer.decode([token])
            if piece and regex.fullmatch(constraint.text, said + piece, partial=True):
                return token
        return self.info.eos_token_ids[0]

    def _wanted(self, ids: list[int], index: int) -> int:
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        said = self.tokenizer.encode(self._reply(text, index), add_special_tokens=False)
        return said[0] if said else self.info.eos_token_ids[0]

    def _logprob(self, context: list[int], token: int, index: int = 0) -> TokenLogprob:
        unlikely = (1 - LIKELY) / (self.info.vocab_size - 1)
        likely = token == self._wanted(context, index)
        return TokenLogprob(token_id=token, logprob=math.log(LIKELY if likely else unlikely))

    def _prompt_logprobs(self, request: GenerateRequest, index: int) -> list[TokenLogprob]:
        ids, start = request.input_ids, request.logprob_start
        if not request.return_logprob or start is None or index > 0:
            return []
        return [
            self._logprob(ids[:at], ids[at]) if at else TokenLogprob(token_id=ids[0], logprob=None)
            for at in range(start, len(ids))
        ]


def tiny_tokenizer(folder: Path) -> Tokenizer:
    """The tiny model's tokenizer."""
    from tiny import write_tokenizer

    from phloem.runtime.text.folder import folder_tokenizer

    write_tokenizer(folder)
    return folder_tokenizer(folder)
