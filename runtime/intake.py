"""From a request to its sequences: seeds, limits, namespace, and the grammar to wait for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from phloem.constrained import Grammar, GrammarCompiler, GrammarSpec
from phloem.runtime.output import OutputText
from phloem.runtime.protocol import GenerateRequest, ModelInfo
from phloem.runtime.scheduling.buffer import IntBuffer
from phloem.runtime.scheduling.sequence import Sequence
from phloem.runtime.text.tokenizer import Tokenizer

SEED_RANGE = 1 << 62


@dataclass(slots=True)
class Intake:
    """Makes sequences of requests, and keeps those whose grammar is still being compiled."""

    tokenizer: Tokenizer
    grammars: GrammarCompiler
    info: ModelInfo
    random: random.Random
    compiling: dict[str, tuple[Sequence, Future[Grammar]]] = field(default_factory=dict)

    def sequences(self, request: GenerateRequest, arrival: float) -> Sequence:
        """The first of the ``n`` sequences of a request that came at ``arrival`` (seconds).

        The others are its siblings.
        """
        seed = request.sampling.seed
        if seed is None:
            seed = self.random.randrange(SEED_RANGE)
        first, *others = (
            self._sequence(request, index, seed, arrival) for index in range(request.sampling.n)
        )
        first.siblings = others
        return first

    def _sequence(
        self, request: GenerateRequest, index: int, seed: int, arrival: float
    ) -> Sequence:
        return Sequence(
            request=request,
            index=index,
            seed=(seed + index) % (1 << 63),
            arrival=arrival,
            namespace=namespace(request),
            token_limit=self._token_limit(request),
            output=OutputText(self.tokenizer, request.sampling),
            tokens=IntBuffer(request.input_ids),
            prompt_length=len(request.input_ids),
        )

    def _token_limit(self, request: GenerateRequest) -> int:
        most = min(self.info.context_length, self.info.max_request_tokens)
        wanted = request.sampling.max_new_tokens
        return most if wanted is None else min(most, len(request.input_ids) + wanted)

    def compile(self, first: Sequence) -> None:
        """Start to compile the request's grammar; ``compiled`` hands the sequence out again."""
        constraint = first.params.constraint
        assert constraint is not None
        spec = GrammarSpec(kind=constraint.kind, text=constraint.text)
        self.compiling[first.request.rid] = (first, self.grammars.submit(spec))

    def compiled(self) -> Iterator[tuple[Sequence, Future[Grammar]]]:
        """Sequences whose grammar is ready, or failed."""
        done = [rid for rid, (_, future) in self.compiling.items() if future.done()]
        for rid in done:
            yield self.compiling.pop(rid)


def namespace(request: GenerateRequest) -> str:
    """Requests share prefixes only within one; the lengths make the parts unambiguous."""
    parts = (request.extra_key, request.cache_salt)
    return "".join(f"{len(part)}:{part}" for part in parts)
