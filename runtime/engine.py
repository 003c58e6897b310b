"""The engine's one step: admit, schedule, execute, apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from phloem.kernels.ops import NO_TOKEN
from phloem.runtime.counters import Counters
from phloem.runtime.errors import PhloemError, RequestError
from phloem.runtime.executor import Executor
from phloem.runtime.generation import Generation, News, fail
from phloem.runtime.intake import Intake
from phloem.runtime.kv_events import KVEvents
from phloem.runtime.masks import fill_masks
from phloem.runtime.plan import StepResult
from phloem.runtime.protocol import Delta, EngineStats, Finish, GenerateRequest
from phloem.runtime.sampling.planner import PlannedStep, plan_step
from phloem.runtime.sampling.scores import output_logprob, prompt_logprobs
from phloem.runtime.scheduling.deadlines import Deadlines
from phloem.runtime.scheduling.scheduler import Scheduler, Span
from phloem.runtime.scheduling.sequence import Sequence
from phloem.runtime.snapshot import snapshot

logger = logging.getLogger(__name__)


class EngineCore:
    """Requests in, deltas out. Not thread-safe: one loop owns it.

    A sequence is known from ``add`` until the step that reports its finish.
    """

    def __init__(
        self,
        intake: Intake,
        scheduler: Scheduler,
        executor: Executor,
        generation: Generation,
        deadlines: Deadlines,
        kv_events: KVEvents | None = None,
        *,
        check_invariants: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.intake = intake
        self.scheduler = scheduler
        self.executor = executor
        self.generation = generation
        self.deadlines = deadlines
        self.kv_events = kv_events
        self.check_invariants = check_invariants
        self.clock = clock
        self.counters = Counters()
        self._requests: dict[str, list[Sequence]] = {}
        self._news: dict[Sequence, News] = {}

    # What a loop calls

    @property
    def has_work(self) -> bool:
        """Whether a step could do something now."""
        return bool(self.scheduler.running or self.scheduler.waiting or self._news)

    @property
    def is_compiling(self) -> bool:
        return bool(self.intake.compiling)

    def add(self, request: GenerateRequest) -> None:
        """Take a valid request with an ``rid`` that is not in use."""
        if request.rid in self._requests:
            raise PhloemError(f"rid {request.rid!r} is in use")
        first = self.intake.sequences(request, self.clock())
        self.scheduler.memory.prefetch(first)
        if request.sampling.constraint is None:
            self.scheduler.add(first)
        else:
            self.intake.compile(first)
        self._requests[request.rid] = [first, *first.siblings]
        self.deadlines.add(request, first.arrival)
        self.counters.prompt_tokens += first.prompt_length

    def abort(self, rid: str) -> bool:
        """End a request; the next step reports it. False if it is not known."""
        known = rid in self._requests
        self._end_request(rid, Finish(reason="abort"))
        return known

    def flush_cache(self) -> bool:
        """Empty the prefix cache; False, and nothing done, while requests run."""
        emptied = not self._requests and self.scheduler.memory.flush()
        if self.kv_events is not None:
            self.kv_events.publish()
        return emptied

    def close(self) -> None:
        """End for good: what lower tiers of the cache are to keep is written."""
        self.scheduler.memory.close()
        if self.kv_events is not None:
            self.kv_events.close()

    def step(self) -> list[Delta]:
        """Do one step; the news that are due, of the sequences that it touched."""
        started = self.clock()
        self._take_compiled()
        for rid, error in self.deadlines.passed(started).items():
            self._end_request(rid, Finish(reason="error", error=error))
        schedule = self.scheduler.schedule(started)
        self.counters.retracted += schedule.retracted
        for seq in schedule.starved:
            self._fail_request(seq, no_room(seq, self.scheduler.memory.capacity), status=400)
        if schedule.spans:
            self._run(schedule.spans)
            self.scheduler.memory.step_done()
            self.counters.steps += 1
            self.counters.step_seconds += self.clock() - started
        deltas = self._collect()
        if self.kv_events is not None:
            self.kv_events.publish()
        if self.check_invariants:
            self.scheduler.memory.check(self.scheduler.running)
        return deltas

    def stats(self) -> EngineStats:
        return snapshot(self.scheduler, len(self.intake.compiling), self.counters)

    # One step

    def _take_compiled(self) -> None:
        """Queue the sequences whose grammars are ready; end those whose grammars failed."""
        for first, future in self.intake.compiled():
            error = future.exception()
            if error is None:
                for seq in (first, *first.siblings):
                    seq.matcher = future.result().matcher()
                self.scheduler.add(first)
                continue
            for seq in self._requests[first.request.rid]:
                self._fail(seq, error, status=400)

    def _run(self, spans: list[Span]) -> None:
        step = plan_step(spans, self.scheduler.memory.page_size, self.generation.eos_ids)
        try:
            result = self.executor.execute(
                step.plan, lambda: fill_masks(step.sampled, self.executor.vocab_size)
            )
        except Exception as error:
            logger.exception("a step of %d sequences failed", len(spans))
            for span in spans:
                self._fail_request(span.seq, error)
            return
        self._advance(spans)
        self._take_prompt_scores(step, result)
        self._take_tokens(step, result)

    def _advance(self, spans: Iterable[Span]) -> None:
        """Count the computed tokens, share their pages, fork where a prompt is complete."""
        for span in spans:
            seq, was_prefilling = span.seq, span.seq.prefilling
            if seq.computed == seq.cached_tokens and seq.retractions == 0:
                self.counters.cached_tokens += seq.cached_tokens
            reaches_end = span.reaches_end
            self.deadlines.started(seq.request.rid)
            seq.computed += span.count
            self.counters.computed_tokens += span.count
            if was_prefilling:
                self.scheduler.memory.checkpoint(seq)
            if reaches_end and seq.siblings:
                self.scheduler.fork(seq)
            if reaches_end and seq.remaining <= 0:
                self._finish_unsampled(seq)

    def _finish_unsampled(self, seq: Sequence) -> None:
        """A prompt that was only to be cached or scored."""
        for each in self._requests[seq.request.rid]:
            if each.finish is None and each.generated == 0:
                self._end(each, Finish(reason="length"))

    def _take_prompt_scores(self, step: PlannedStep, result: StepResult) -> None:
        for score in step.prompt_scores:
            found = prompt_logprobs(score, step.plan.scores, result)
            score.seq.prompt_logprobs += found
            self._news_of(score.seq).prompt_logprobs += found

    def _take_tokens(self, step: PlannedStep, result: StepResult) -> None:
        for row, seq in enumerate(step.sampled):
            if seq.finish is not None:
                self._close(seq)
                continue
            news = self._news_of(seq)
            if step.output_scores[row] >= 0:
                news.logprobs.append(
                    output_logprob(step.output_scores[row], row, seq, step.plan.scores, result)
                )
            self._accept(seq, int(result.token_ids[row]), news)

    def _accept(self, seq: Sequence, token: int, news: News) -> None:
        if token == NO_TOKEN:
            self._fail(seq, PhloemError("no token can be chosen: the logits are not finite"))
            return
        before = seq.generated
        try:
            self.counters.forced_tokens += self.generation.accept(seq, token, news)
        except Exception as error:
            logger.exception("request %s failed", seq.request.rid)
            fail(seq, error)
        self.counters.generated_tokens += seq.generated - before
        if seq.finish is not None:
            self._close(seq)

    # Ends and news

    def _news_of(self, seq: Sequence) -> News:
        return self._news.setdefault(seq, News())

    def _end(self, seq: Sequence, finish: Finish) -> None:
        if seq.finish is None:
            seq.finish = finish
            self._close(seq)

    def _fail(self, seq: Sequence, error: BaseException, *, status: int = 500) -> None:
        if seq.finish is None:
            fail(seq, error, status)
            self._close(seq)

    def _fail_request(self, seq: Sequence, error: Exception, *, status: int = 500) -> None:
        """The sequence, and the siblings that would have forked from it."""
        for each in (seq, *seq.siblings):
            self._fail(each, error, status=status)

    def _end_request(self, rid: str, finish: Finish) -> None:
        """All that is left of a request, wherever it is; nothing if it is not known."""
        self.intake.compiling.pop(rid, None)
        for seq in self._requests.get(rid, ()):
            self._end(seq, finish)

    def _close(self, seq: Sequence) -> None:
        """Release a finished sequence; its last news go out with this step."""
        assert seq.finish is not None
        self.scheduler.remove(seq, self.clock(), keep=seq.finish.reason != "error")
        self._news_of(seq)
        self.counters.finished += seq.finish.reason in ("stop", "length")
        self.counters.aborted += seq.finish.reason == "abort"
        self.counters.failed += seq.finish.reason == "error"

    def _collect(self) -> list[Delta]:
        due = {seq: news for seq, news in self._news.items() if news.is_due(seq)}
        deltas = [news.delta(seq) for seq, news in due.items()]
        for seq in due:
            del self._news[seq]
            if seq.finish is not None:
                self._forget(seq)
        return deltas

    def _forget(self, seq: Sequence) -> None:
        remaining = self._requests[seq.request.rid]
        remaining.remove(seq)
        if not remaining:
            del self._requests[seq.request.rid]
            self.deadlines.remove(seq.request.rid)


def no_room(seq: Sequence, capacity: int) -> RequestError:
    return RequestError(
        f"the request needs {len(seq.tokens)} tokens of KV cache, more than the whole cache of "
        f"{capacity} tokens can give it",
        param="input_ids",
        code="context_length_exceeded",
    )
