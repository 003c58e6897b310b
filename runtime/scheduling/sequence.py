"""One continuation of one request, from its arrival to its end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from phloem.runtime.scheduling.buffer import IntBuffer, Ints

if TYPE_CHECKING:
    from phloem.constrained import Matcher
    from phloem.radix_cache import Node
    from phloem.runtime.output import OutputText
    from phloem.runtime.protocol import Finish, GenerateRequest, SamplingParams, TokenLogprob
    from phloem.runtime.scheduling.programs import Program


class Seen(NamedTuple):
    """What a tree held of a sequence: tokens, and the node at which they end (None: no tree).

    ``state`` counts the tree's changes until then.
    """

    state: int
    tokens: int
    node: Node | None


@dataclass(eq=False, slots=True)
class Sequence:
    """Known tokens, and how many of them have their KV computed.

    The scheduler owns ``computed``, ``pages`` and ``node``; the engine owns the rest.
    Invariants: ``computed < len(tokens)`` until the sequence is finished;
    ``len(pages) * page_size >= computed`` while it runs, and no pages are held while it waits.

    Attributes:
        seed: of the random draws; a draw depends on it and on the token's position alone.
        arrival: when the request came, in seconds of the engine's clock.
        token_limit: ``len(tokens)`` at which generation ends with reason "length".
        node: the radix tree node locked for the leading ``shared_pages`` of ``pages``.
        forced: tokens that the grammar has fixed but that are not yet known tokens; used only
            where each token must be sampled by itself (log-probabilities).
        waits_since: when it was queued last, and ``waited`` in all before that, in seconds.
        cached_tokens: tokens that the cache had when it first started; None until then.
        seen: the last look at what the tree holds of it (see SequenceMemory.cached).
        program: the account of the program that it is a call of, from its arrival to its end.
        siblings: the other continuations of the request, until they fork from this one.
    """

    request: GenerateRequest
    index: int
    seed: int
    arrival: float
    namespace: str
    token_limit: int
    output: OutputText
    tokens: IntBuffer
    prompt_length: int
    computed: int = 0
    pages: IntBuffer = field(default_factory=IntBuffer)
    node: Node | None = None
    shared_pages: int = 0
    cached_tokens: int | None = None
    seen: Seen | None = None
    waits_since: float = 0.0
    waited: float = 0.0
    matcher: Matcher | None = None
    forced: deque[int] = field(default_factory=deque)
    siblings: list[Sequence] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)
    program: Program | None = None
    retractions: int = 0
    finish: Finish | None = None

    @property
    def params(self) -> SamplingParams:
        return self.request.sampling

    @property
    def uncomputed(self) -> int:
        return len(self.tokens) - self.computed

    @property
    def prefilling(self) -> bool:
        """Whether prompt tokens are still to be computed (or computed again)."""
        return self.computed < self.prompt_length

    @property
    def generated(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def output_ids(self) -> Ints:
        return self.tokens.view()[self.prompt_length :]

    @property
    def remaining(self) -> int:
        """How many more tokens it may generate."""
        return self.token_limit - len(self.tokens)

    @property
    def scores_prompt(self) -> bool:
        return self.request.logprob_start is not None and self.index == 0

    @property
    def reusable(self) -> int:
        """How many leading tokens may come from the cache.

        The last known token must be computed, since its logits are wanted; so must every token
        whose logits score a prompt token that has not been scored yet.
        """
        last = len(self.tokens) - 1
        if not self.scores_prompt or self.prompt_scored:
            return last
        assert self.request.logprob_start is not None
        next_score = self.request.logprob_start + len(self.prompt_logprobs)
        return min(last, max(next_score - 1, 0))

    @property
    def prompt_scored(self) -> bool:
        start = self.request.logprob_start
        return start is None or len(self.prompt_logprobs) == self.prompt_length - start
