"""A deterministic engine without a model, behind the real client: it echoes the prompt.

Sequence ``index`` of a request repeats the prompt's tokens from token ``index`` on, over and over,
until its length, a stop, an end-of-sequence token or an abort. It honours what the HTTP layer can
observe: lengths, stops, scores, n, errors and aborts.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from phloem.runtime.output import OutputText
from phloem.runtime.protocol import (
    Delta,
    EngineStats,
    ErrorInfo,
    Finish,
    GenerateRequest,
    TokenLogprob,
)
from phloem.runtime.text.tokenizer import Tokenizer
from phloem.runtime.wire import (
    Abort,
    Add,
    Command,
    Dead,
    Flush,
    Flushed,
    GetStats,
    News,
    Reply,
    Shutdown,
    Stats,
)


def logprob(token: int) -> float:
    return -0.125 * (1 + token % 16)


def scored(token: int, request: GenerateRequest, *, first: bool = False) -> TokenLogprob:
    """The alternatives are the token itself and those after it, each half as likely again."""
    if first:
        return TokenLogprob(token_id=token, logprob=None)
    top = tuple((token + i, logprob(token) - i) for i in range(request.top_logprobs))
    chosen = tuple((other, logprob(other)) for other in request.token_ids_logprob)
    return TokenLogprob(token_id=token, logprob=logprob(token), top=top, chosen=chosen)


@dataclass
class Running:
    request: GenerateRequest
    index: int
    output: OutputText
    script: list[int] | None
    produced: int = 0
    finish: Finish | None = None

    def next_token(self) -> int:
        source = self.script or self.request.input_ids
        return source[(self.produced + self.index * (self.script is None)) % len(source)]


@dataclass
class ToyEngine:
    """A ``phloem.runtime.engine_client.Connection``.

    Attributes:
        delay: seconds per step.
        script: what to say instead of the prompt; the error to fail with; None to echo.
        added: all requests that came.
    """

    tokenizer: Tokenizer
    delay: float = 0.0
    script: Callable[[GenerateRequest], list[int] | ErrorInfo | None] = lambda request: None
    fail_after: int | None = None
    added: list[GenerateRequest] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._steps = 0

    def start(self, receive: Callable[[Reply], None]) -> None:
        self._receive = receive
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def close(self) -> None:
        self.send(Shutdown())
        if self._thread is not None:
            self._thread.join()

    def die(self) -> None:
        """End as a crashed engine does."""
        self.close()

    def _run(self) -> None:
        try:
            while self._obey_all():
                self._step()
            self._receive(Dead("the engine was shut down"))
        except Exception as error:
            self._receive(Dead(f"the toy is broken: {error!r}"))

    def _obey_all(self) -> bool:
        """Obey what has come, at least one command if nothing runs; False to end."""
        while True:
            try:
                command = self._commands.get(block=not self.running)
            except queue.Empty:
                return True
            if isinstance(command, Shutdown):
                return False
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Add(request):
                self._add(request)
            case Abort(rid):
                self.aborted.append(rid)
                self._end_all(rid, Finish(reason="abort"))
            case Flush(ticket):
                self._receive(Flushed(ticket, not self.running))
            case GetStats(ticket):
                stats = EngineStats(running=len(self.running), steps_total=self._steps)
                self._receive(Stats(ticket, stats))

    def _add(self, request: GenerateRequest) -> None:
        self.added.append(request)
        script = self.script(request)
        for index in range(request.sampling.n):
            output = OutputText(self.tokenizer, request.sampling)
            said = script if isinstance(script, list) else None
            self.running.append(Running(request, index, output, said))
        if isinstance(script, ErrorInfo):
            self._end_all(request.rid, Finish(reason="error", error=script))

    def _end_all(self, rid: str, finish: Finish) -> None:
        ended = [each for each in self.running if each.request.rid == rid]
        self.running = [each for each in self.running if each.request.rid != rid]
        if ended:
            self._receive(News([self._delta(each, "", [], finish) for each in ended]))

    def _step(self) -> None:
        if self.delay:
            time.sleep(self.delay)
        self._steps += 1
        self._receive(News([self._advance(each) for each in self.running]))
        self.running = [each for each in self.running if each.finish is None]

    def _advance(self, each: Running) -> Delta:
        params = each.request.sampling
        if each.produced == self.fail_after:
            error = ErrorInfo(status=500, message="the toy broke", code="toy_error")
            each.finish = Finish(reason="error", error=error)
            return self._delta(each, "", [], each.finish)
        if params.max_new_tokens == 0:
            each.finish = Finish(reason="length")
            return self._delta(each, "", [], each.finish, first=True)
        token = each.next_token()
        each.produced += 1
        if token in self.tokenizer.eos_token_ids and not params.ignore_eos:
            each.finish = Finish(reason="stop", matched=token)
            text = each.output.finish()
        else:
            result = each.output.push(token)
            text = result.text
            if result.matched is not None:
                each.finish = Finish(reason="stop", matched=result.matched)
            elif each.produced == params.max_new_tokens:
                each.finish = Finish(reason="length")
                text += each.output.finish()
        return self._delta(each, text, [token], each.finish, first=each.produced == 1)

    def _delta(
        self,
        each: Running,
        text: str,
        tokens: list[int],
        finish: Finish | None,
        *,
        first: bool = False,
    ) -> Delta:
        request = each.request
        start = request.logprob_start if request.return_logprob else None
        prompt: list[TokenLogprob] = []
        if start is not None and first and each.index == 0:
            begin, *rest = request.input_ids
            scores = [scored(begin, request, first=True), *(scored(i, request) for i in rest)]
            prompt = scores[start:]
        return Delta(
            rid=request.rid,
            index=each.index,
            text=text,
            token_ids=tokens,
            logprobs=[scored(t, request) for t in tokens] if request.return_logprob else [],
            prompt_logprobs=prompt,
            prompt_tokens=len(request.input_ids),
            cached_tokens=len(request.input_ids) // 2,
            completion_tokens=each.produced,
            finish=finish,
        )
