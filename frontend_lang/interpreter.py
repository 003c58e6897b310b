"""The meaning of each action: what it does to the transcript and what it asks of the backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from phloem.frontend_lang.actions import Action, Close, Gather, Graft, Restore, Snapshot
from phloem.frontend_lang.backends.base import Backend, Call, OnText
from phloem.frontend_lang.backends.scoring import score_choices
from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.ir import (
    Gen,
    Role,
    RoleBegin,
    RoleEnd,
    ScopeBegin,
    ScopeEnd,
    Select,
    Text,
)
from phloem.frontend_lang.options import Options
from phloem.frontend_lang.promise import Stream
from phloem.frontend_lang.transcript import Transcript
from phloem.frontend_lang.variables import Value
from phloem.runtime.errors import RequestError

if TYPE_CHECKING:
    from phloem.runtime.text.roles import Affixes, RoleAffixes


@dataclass(frozen=True, slots=True)
class Context:
    """What all states of one program run share.

    Attributes:
        program: id of the run.
        defaults: options for whatever a ``gen`` does not set.
        streaming: whether text is published as it grows.
    """

    program: str
    backend: Backend
    defaults: Options
    streaming: bool


class Interpreter:
    """Executes one action at a time on the transcript of one state.

    Attributes:
        published: the whole text as it grows; fed only where the run streams.
    """

    def __init__(self, context: Context) -> None:
        self.published = Stream()
        self._context = context
        self._transcript = Transcript()
        self._published_length = 0

    async def execute(self, action: Action, chunks: Stream | None) -> Any:
        """What ``action`` yields. A ``Gen`` feeds its text to ``chunks``, where given."""
        match action:
            case Text(text):
                self._become(self._transcript.append(text))
            case Gen():
                return await self._generate(action, chunks)
            case Select():
                return await self._select(action)
            case RoleBegin(role):
                await self._begin(role)
            case RoleEnd(role):
                await self._end(role)
            case ScopeBegin(name):
                self._become(self._transcript.enter(name))
            case ScopeEnd(name):
                transcript, text = self._transcript.leave(name)
                self._become(transcript)
                return Value(text)
            case Snapshot():
                return self._transcript
            case Restore(source):
                self._become(await source)
            case Gather(sources):
                values = [await source for source in sources]
                return Value([each.value for each in values], [each.meta for each in values])
            case Graft(base, tip):
                self._become(self._transcript.graft(await tip, await base))
            case Close():
                self.published.close()
        return None

    async def _generate(self, gen: Gen, chunks: Stream | None) -> Value:
        options = gen.options.over(self._context.defaults)
        start = options.logprob_start_len
        call = Call(
            prompt=self._transcript.text,
            sampling=options.sampling(gen.constraint),
            return_logprob=bool(options.return_logprob),
            logprob_start=None if start == -1 else start,
            top_logprobs=options.top_logprobs_num or 0,
            program=self._context.program,
        )
        on_text = self._publisher(chunks) if self._context.streaming else None
        completions = await self._context.backend.generate(call, on_text)
        self._become(self._transcript.append(completions[0].text))
        if chunks is not None:
            chunks.close()
        if call.sampling.n == 1:
            return Value(completions[0].text, completions[0].meta)
        return Value([each.text for each in completions], [each.meta for each in completions])

    async def _select(self, select: Select) -> Value:
        scored = await score_choices(
            self._context.backend,
            self._transcript.text,
            select.choices,
            unconditional=select.method.unconditional,
        )
        decision = select.method.decide(scored)
        choice = select.choices[decision.index]
        self._become(self._transcript.append(choice))
        tokens = [list(zip(each.logprobs, each.token_ids, strict=True)) for each in scored]
        return Value(choice, {**decision.meta, "input_token_logprobs": tokens})

    async def _begin(self, role: Role) -> None:
        affixes = await self._context.backend.affixes()
        transcript = self._transcript
        first = not transcript.messages and transcript.turn is None
        if role == "system" and not first:
            raise ProgramError("a system turn can only be the first")
        if role != "system" and first:
            transcript = transcript.append(affixes.opening)
        self._become(transcript.begin(role, _around(affixes, role).prefix))

    async def _end(self, role: Role) -> None:
        affixes = await self._context.backend.affixes()
        self._become(self._transcript.end(role, _around(affixes, role).suffix))

    def _publisher(self, chunks: Stream | None) -> OnText:
        def publish(text: str) -> None:
            self.published.feed(text)
            self._published_length += len(text)
            if chunks is not None:
                chunks.feed(text)

        return publish

    def _become(self, transcript: Transcript) -> None:
        self._transcript = transcript
        if self._context.streaming:
            self.published.feed(transcript.text[self._published_length :])
            self._published_length = len(transcript.text)


def _around(affixes: RoleAffixes, role: Role) -> Affixes:
    found: Affixes | None = getattr(affixes, role)
    if found is None:
        raise RequestError(
            "the model's chat template has no system turn; put the text into the user's",
            param="role",
            code="chat_template",
        )
    return found
