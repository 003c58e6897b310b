"""Random trees of turns against plain lists of tokens."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from session_tools import Clock, as_turn

from phloem.runtime.errors import RequestError
from phloem.runtime.sessions import Continuation, Session

tokens = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@dataclass
class Known:
    """What the model knows of a recorded turn."""

    parent: str | None
    history: list[int]
    output: int


@dataclass
class Started:
    """A running turn: where it goes on, and what it will be once it is done."""

    where: Continuation
    rid: str
    prompt: list[int]
    output: list[int]
    becomes: Known
    running: ExitStack


class SessionMachine(RuleBasedStateMachine):
    """Turns start anywhere, end in any order, well or not."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session("s", clock=Clock())
        self.known: dict[str, Known] = {}
        self.started: list[Started] = []
        self.count = 0

    @rule(
        data=st.data(),
        prompt=tokens,
        output=tokens,
        offset=st.none() | st.integers(-12, 12),
        replace=st.booleans(),
        drop=st.booleans(),
    )
    def start(
        self,
        data: st.DataObject,
        prompt: list[int],
        output: list[int],
        offset: int | None,
        replace: bool,
        drop: bool,
    ) -> None:
        rid = data.draw(st.sampled_from([None, *self.known]))
        parent = next(reversed(self.known), None) if rid is None and not replace else rid
        kept = [] if parent is None else list(self.known[parent].history)
        if parent is not None and drop:
            kept = kept[: len(kept) - self.known[parent].output]
        options = {"offset": offset, "replace": replace, "drop_previous_output": drop}
        if parent is not None and offset and abs(offset) > len(kept):
            with pytest.raises(RequestError, match=rf"offset.*-{len(kept)}, {len(kept)}"):
                self.session.resume(rid, **options)
            return
        where = self.session.resume(rid, **options)
        kept = kept[:offset] if offset else kept
        assert where.history() == kept
        self._start(where, prompt, output, Known(parent, kept + prompt + output, len(output)))

    def _start(
        self, where: Continuation, prompt: list[int], output: list[int], becomes: Known
    ) -> None:
        self.count += 1
        running = ExitStack()
        rid = f"r{self.count}"
        running.enter_context(self.session.running(where, rid, len(prompt + output)))
        self.started.append(Started(where, rid, prompt, output, becomes, running))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        turn = self.started.pop(data.draw(st.integers(0, len(self.started) - 1)))
        made = as_turn(turn.where, turn.rid, turn.prompt, turn.output)
        self.session.record(made, replace=turn.where.replace)
        turn.running.close()
        parent = turn.becomes.parent
        if parent is not None and parent not in self.known:
            return
        if turn.where.replace:
            self.known = {r: k for r, k in self.known.items() if not self._is_after(r, parent)}
        self.known[turn.rid] = turn.becomes

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        turn = self.started.pop(data.draw(st.integers(0, len(self.started) - 1)))
        turn.running.close()

    def _is_after(self, rid: str, ancestor: str | None) -> bool:
        above = self.known[rid].parent
        while above is not None and above != ancestor:
            above = self.known[above].parent
        return above == ancestor

    @invariant()
    def every_turn_has_its_history(self) -> None:
        for rid, known in self.known.items():
            assert self.session.resume(rid).history() == known.history
        for number in range(1, self.count + 1):
            assert (self.session.turn(f"r{number}") is not None) == (f"r{number}" in self.known)

    @invariant()
    def the_latest_goes_on(self) -> None:
        latest = next(reversed(self.known.values()), None)
        assert self.session.resume().history() == ([] if latest is None else latest.history)

    @invariant()
    def tokens_are_counted(self) -> None:
        turns = [self.session.turn(rid) for rid in self.known]
        running = sum(len(each.prompt + each.output) for each in self.started)
        assert self.session.tokens == running + sum(len(turn.tokens) for turn in turns if turn)


TestSessionModel = SessionMachine.TestCase
TestSessionModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
