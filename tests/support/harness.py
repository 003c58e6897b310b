"""Drive an engine core step by step, in the test's thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phloem.runtime.bootstrap import LoadedModel, assemble, load
from phloem.runtime.completion import Completion
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine import EngineCore
from phloem.runtime.protocol import Delta, GenerateRequest, SamplingParams

Completions = dict[str, list[Completion]]
_names = itertools.count()


def make_core(loaded: LoadedModel, **options: object) -> EngineCore:
    """A core on an already loaded model; every step accounts for every page."""
    settings = {"kv_tokens": 4096, "check_invariants": True, "random_seed": 0, **options}
    return assemble(loaded, EngineConfig(model=loaded.path, **settings)).core  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """A model loaded for one way to compute, and the engine options that belong to it."""

    loaded: LoadedModel
    options: dict[str, Any]

    def core(self, **options: object) -> EngineCore:
        return make_core(self.loaded, **self.options, **options)


def load_arithmetic(path: Path, options: dict[str, Any]) -> Arithmetic:
    return Arithmetic(load(EngineConfig(model=str(path), **options)), options)


def request(prompt: Sequence[int], *, rid: str = "", **fields: object) -> GenerateRequest:
    """A greedy request; fields of GenerateRequest and of SamplingParams alike."""
    own = {k: fields.pop(k) for k in list(fields) if k in GenerateRequest.__struct_fields__}
    sampling = SamplingParams(**{"temperature": 0.0, "max_new_tokens": 8, **fields})  # type: ignore[arg-type]
    rid = rid or f"r{next(_names)}"
    return GenerateRequest(rid=rid, input_ids=list(prompt), sampling=sampling, **own)  # type: ignore[arg-type]


def drain(
    core: EngineCore, on_step: Callable[[list[Delta]], None] = lambda deltas: None
) -> list[Delta]:
    """Step until nothing is left to do."""
    deltas: list[Delta] = []
    while core.has_work or core.is_compiling:
        news = core.step()
        on_step(news)
        deltas += news
    return deltas


def gather(requests: Sequence[GenerateRequest], deltas: Sequence[Delta]) -> Completions:
    """The deltas by request, in order."""
    found = {r.rid: [Completion(index) for index in range(r.sampling.n)] for r in requests}
    for delta in deltas:
        found[delta.rid][delta.index].add(delta)
    return found


def run(core: EngineCore, requests: Sequence[GenerateRequest]) -> Completions:
    """Submit all requests together and wait for all."""
    for each in requests:
        core.add(each)
    return gather(requests, drain(core))


def run_alone(core: EngineCore, each: GenerateRequest) -> list[Completion]:
    """Submit one request and wait for it."""
    return run(core, [each])[each.rid]
