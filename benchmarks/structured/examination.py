"""One schema, by one engine: does it compile, is it right, what does it cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from structured.durations import Durations
from structured.engine import Engine, Grammar, Refused, Walk

Encode = Callable[[str], Sequence[int] | None]
"""A text as tokens; None if they cannot spell it."""


@dataclass
class Outcome:
    """What became of a schema.

    Attributes:
        verdict: ``compiled``, ``refused``, ``timed out`` or ``crashed``.
        keyword: of a refusal, the keyword at fault or a word for the reason.
        message: of a refusal or crash, for people.
        instances: how many there were, without those that the tokenizer cannot spell.
        rejected: indices of valid instances that cannot be written.
        passed: indices of invalid instances that can.
        failures: messages of run-time errors.
        compile_s: seconds of processor time to the first mask.
    """

    name: str
    verdict: str = "compiled"
    keyword: str = ""
    message: str = ""
    instances: int = 0
    rejected: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    compile_s: float = 0.0
    fills: Durations = field(default_factory=Durations)
    accepts: Durations = field(default_factory=Durations)

    def plain(self) -> dict[str, Any]:
        """For JSON; `read` is its inverse."""
        return {**self.__dict__, "fills": self.fills.plain(), "accepts": self.accepts.plain()}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Outcome:
        durations = {key: Durations.read(plain[key]) for key in ("fills", "accepts")}
        return cls(**{**plain, **durations})

    @property
    def compiled(self) -> bool:
        return self.verdict == "compiled"

    @property
    def right(self) -> bool:
        return self.compiled and not (self.rejected or self.passed or self.failures)


def examine(engine: Engine, encode: Encode, case: dict[str, Any]) -> Outcome:
    """Compile the schema of ``case`` and write its instances."""
    outcome = Outcome(case["name"])
    valid, invalid = spelled(case["valid"], encode), spelled(case["invalid"], encode)
    outcome.instances = len(valid) + len(invalid)
    grammar = compile_timed(engine, case["schema"], outcome)
    if grammar is not None:
        for index, tokens in valid.items():
            if not write(grammar, tokens, outcome).offered:
                outcome.rejected.append(index)
        for index, tokens in invalid.items():
            if write(grammar, tokens, outcome).legal:
                outcome.passed.append(index)
    return outcome


def compile_timed(engine: Engine, schema: Any, outcome: Outcome) -> Grammar | None:
    """The grammar; None if there is none, as ``outcome`` then says."""
    started = time.process_time()  # an engine may compile on a thread of its own
    try:
        grammar = engine.compile(schema)
    except Refused as error:
        outcome.verdict, outcome.keyword, outcome.message = "refused", error.keyword, error.message
        return None
    except Exception as error:
        outcome.verdict, outcome.keyword = "crashed", type(error).__name__
        outcome.message = f"{type(error).__name__}: {error}"[:300]
        return None
    outcome.compile_s = time.process_time() - started
    outcome.warnings = list(grammar.warnings)
    return grammar


def spelled(values: Sequence[Any], encode: Encode) -> dict[int, Sequence[int]]:
    """The tokens of each value by its index."""
    texts = (json.dumps(value, ensure_ascii=False) for value in values)
    found = {index: encode(text) for index, text in enumerate(texts)}
    return {index: tokens for index, tokens in found.items() if tokens is not None}


class Written(NamedTuple):
    """Whether a text is legal, and whether each mask offered its next token, too."""

    legal: bool
    offered: bool


def write(grammar: Grammar, tokens: Sequence[int], outcome: Outcome) -> Written:
    """Write ``tokens`` as far as they are legal."""
    pace = Pace()
    try:
        return pace.run(grammar.walk(), tokens)
    except Exception as error:
        outcome.failures.append(f"{type(error).__name__}: {error}"[:200])
        return Written(False, False)
    finally:
        outcome.fills.add(pace.fills)
        outcome.accepts.add(pace.accepts)


@dataclass
class Pace:
    """Seconds of this thread's processor time, for each token."""

    fills: list[float] = field(default_factory=list)
    accepts: list[float] = field(default_factory=list)

    def run(self, walk: Walk, tokens: Sequence[int]) -> Written:
        offered = True
        for token in tokens:
            self.fills.append(timed(walk.fill)[1])
            offered = offered and walk.offers(token)
            legal, seconds = timed(partial(walk.accept, token))
            self.accepts.append(seconds)
            if not legal:
                return Written(False, False)
        return Written(walk.accepting, offered and walk.accepting)


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    started = time.thread_time_ns()
    result = action()
    return result, (time.thread_time_ns() - started) / 1e9
