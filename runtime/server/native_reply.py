"""Results in SGLang's native shape."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from phloem.runtime.completion import Completion
from phloem.runtime.protocol import Finish, GenerateRequest, TokenLogprob
from phloem.runtime.server.collect import Batch
from phloem.runtime.server.logprobs import finite
from phloem.runtime.server.native_types import (
    FinishReason,
    GenerateResult,
    MetaInfo,
    TopTriples,
    Triple,
)

if TYPE_CHECKING:
    from phloem.runtime.text.tokenizer import Tokenizer


class Results:
    """Makes the results of a batch's slots; with a tokenizer, log-probabilities show texts."""

    def __init__(self, batch: Batch, tokenizer: Tokenizer | None) -> None:
        self._arrived = batch.arrived
        self._tokenizer = tokenizer
        self._owners = [
            (request, first)
            for request, first in zip(batch.requests, batch.starts, strict=False)
            for _ in range(request.sampling.n)
        ]

    def __len__(self) -> int:
        """The number of slots."""
        return len(self._owners)

    def make(self, slot: int, completions: Sequence[Completion]) -> GenerateResult:
        """The slot's result so far; the prompt's scores come with its prompt's first slot."""
        request, first = self._owners[slot]
        completion = completions[slot]
        meta = MetaInfo(
            id=request.rid,
            finish_reason=_finish_reason(completion.finish, len(completion.token_ids)),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=len(completion.token_ids),
            cached_tokens=completion.cached_tokens,
            num_retractions=completion.retractions,
        )
        if completion.finish is not None:
            meta.e2e_latency = time.perf_counter() - self._arrived
        if request.return_logprob:
            self._add_scores(meta, request, completions[first].prompt_logprobs, completion.logprobs)
        return GenerateResult(text=completion.text, output_ids=completion.token_ids, meta_info=meta)

    def _add_scores(
        self,
        meta: MetaInfo,
        request: GenerateRequest,
        prompt: Sequence[TokenLogprob],
        output: Sequence[TokenLogprob],
    ) -> None:
        shown = self._tokenizer
        meta.input_token_logprobs = _triples(prompt, shown)
        meta.output_token_logprobs = _triples(output, shown)
        if request.top_logprobs:
            meta.input_top_logprobs = _tops((each.top for each in prompt), shown)
            meta.output_top_logprobs = _tops((each.top for each in output), shown)
        if request.token_ids_logprob:
            meta.input_token_ids_logprobs = _tops((each.chosen for each in prompt), shown)
            meta.output_token_ids_logprobs = _tops((each.chosen for each in output), shown)


def _triple(token: int, logprob: float | None, tokenizer: Tokenizer | None) -> Triple:
    text = None if tokenizer is None else tokenizer.token_text(token)
    return (None if logprob is None else finite(logprob), token, text)


def _triples(entries: Iterable[TokenLogprob], tokenizer: Tokenizer | None) -> list[Triple]:
    return [_triple(entry.token_id, entry.logprob, tokenizer) for entry in entries]


def _tops(
    alternatives: Iterable[Sequence[tuple[int, float]]], tokenizer: Tokenizer | None
) -> TopTriples:
    return [[_triple(*pair, tokenizer) for pair in pairs] or None for pairs in alternatives]


def _finish_reason(finish: Finish | None, generated: int) -> FinishReason | None:
    if finish is None:
        return None
    return FinishReason(
        finish.reason,
        matched=UNSET if finish.matched is None else finish.matched,
        length=generated if finish.reason == "length" else UNSET,
    )
