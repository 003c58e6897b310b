"""What a sampled token does to its sequence: the only place where sequences grow and end."""

from __future__ import annotations

from dataclasses import dataclass, field

from phloem.runtime.protocol import Delta, ErrorInfo, Finish, TokenLogprob
from phloem.runtime.scheduling.sequence import Sequence

LONGEST_JUMP = 64
"""At most so many forced tokens are taken at once."""


@dataclass(slots=True)
class News:
    """What is new of one sequence since its last delta."""

    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)

    def is_due(self, seq: Sequence) -> bool:
        """Whether to tell now: its reader wants every step, or this is the first or the last."""
        is_first = len(self.token_ids) == seq.generated
        return seq.request.stream or is_first or seq.finish is not None

    def delta(self, seq: Sequence) -> Delta:
        return Delta(
            rid=seq.request.rid,
            index=seq.index,
            text="".join(self.text),
            token_ids=self.token_ids,
            logprobs=self.logprobs,
            prompt_logprobs=self.prompt_logprobs,
            prompt_tokens=seq.prompt_length,
            cached_tokens=seq.cached_tokens or 0,
            completion_tokens=seq.generated,
            retractions=seq.retractions,
            finish=seq.finish,
        )


@dataclass(frozen=True, slots=True)
class Generation:
    """How sequences of one engine grow.

    Attributes:
        eos_ids: tokens that end a sequence, unless it ignores them.
        jump_forward: whether tokens that a grammar forces become known at once, to be computed
            in one span. Without it they are sampled one by one from masks that allow nothing
            else, so the output is the same.
    """

    eos_ids: tuple[int, ...]
    jump_forward: bool

    def accept(self, seq: Sequence, token: int, news: News) -> int:
        """Take a sampled token, and those that it lets the grammar force; how many were forced.

        Raises:
            phloem.constrained.GrammarError: the grammar does not allow the token, or failed.
        """
        if seq.forced:
            seq.forced.popleft()
        ended = self._append(seq, token, news)
        if ended or seq.matcher is None or seq.forced:
            return 0
        forced = seq.matcher.forced_tokens(min(seq.remaining, LONGEST_JUMP))
        if not self.jump_forward or seq.request.return_logprob:
            seq.forced.extend(forced)
            return 0
        for count, forced_token in enumerate(forced, start=1):
            if self._append(seq, forced_token, news):
                return count
        return len(forced)

    def _append(self, seq: Sequence, token: int, news: News) -> bool:
        """Make a token known; whether it ended the sequence."""
        if seq.matcher is not None:
            seq.matcher.accept(token)
        seq.tokens.append(token)
        news.token_ids.append(token)
        seq.finish = self._release_text(seq, token, news) or self._end(seq)
        if seq.finish is not None and not isinstance(seq.finish.matched, str):
            news.text.append(seq.output.finish())
        return seq.finish is not None

    def _release_text(self, seq: Sequence, token: int, news: News) -> Finish | None:
        """Release the token's text; the finish if the token, or its text, stops the sequence."""
        stops = self._stops(seq, token)
        if stops and not seq.params.no_stop_trim:
            return Finish(reason="stop", matched=token)
        found = seq.output.push(token, may_stop=seq.generated >= seq.params.min_new_tokens)
        news.text.append(found.text)
        if stops:
            return Finish(reason="stop", matched=token)
        return None if found.matched is None else Finish(reason="stop", matched=found.matched)

    def _stops(self, seq: Sequence, token: int) -> bool:
        if token in seq.params.stop_token_ids:
            return True
        return token in self.eos_ids and not seq.params.ignore_eos

    def _end(self, seq: Sequence) -> Finish | None:
        if seq.matcher is not None and (seq.matcher.stopped or seq.matcher.terminated):
            return Finish(reason="stop")
        return Finish(reason="length") if seq.remaining <= 0 else None


def fail(seq: Sequence, error: BaseException, status: int = 500) -> None:
    """End a sequence with an error that the client will be told."""
    seq.finish = Finish(
        reason="error",
        error=ErrorInfo(
            status=status,
            message=str(error) or type(error).__name__,
            code=getattr(error, "code", "internal_error"),
            pointer=getattr(error, "pointer", None),
        ),
    )
