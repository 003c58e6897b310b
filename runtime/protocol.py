"""What crosses between a client and the engine, in one process or between two.

Every type is a frozen msgspec Struct, so that the in-process client and the ZeroMQ client carry
the same objects. Token ids in, text and token ids out: tokenising is the client's work,
detokenising and stop matching are the engine's, where generation ends within the step.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the wire types."""


GrammarKind = Literal["json_schema", "json_object", "regex", "ebnf", "choice"]


class Constraint(Struct, frozen=True, kw_only=True):
    """What the output must satisfy.

    ``text`` is the schema, regex or grammar; for ``choice`` a JSON array of strings; for
    ``json_object`` it is empty.
    """

    kind: GrammarKind
    text: str = ""


class SamplingParams(Struct, frozen=True, kw_only=True):
    """How to choose tokens and when to stop; names and meanings follow SGLang's.

    ``temperature`` 0 is greedy. ``top_k`` -1 means no limit. Penalties count generated tokens;
    ``repetition_penalty`` also counts prompt tokens. ``max_new_tokens`` 0 only caches (and,
    where asked, scores) the prompt; None means up to the context length.
    """

    max_new_tokens: int | None = 128
    min_new_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] = {}
    seed: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    stop_regex: tuple[str, ...] = ()
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    no_stop_trim: bool = False
    constraint: Constraint | None = None


class GenerateRequest(Struct, frozen=True, kw_only=True):
    """One prompt to continue (``sampling.n`` times).

    ``logprob_start``: position of the first prompt token whose log-probability is wanted; None
    means output tokens only. ``top_logprobs``: how many alternatives to report beside each.
    Requests share cached prefixes only if ``cache_salt`` and ``extra_key`` are equal.
    ``priority``: larger is served first under the priority policy.
    ``deadline``: seconds from arrival after which the request is ended with an error (504).
    ``pin_ttl``: seconds after the end for which the cache keeps the request's tokens, as far as
    running requests leave it room.
    ``program``: id of the program (agent, DSL run) that this call belongs to; ``calls_left``: how
    many calls are expected to follow this one on the program's longest path; None if unknown.
    ``stream``: whether each step's news are wanted; without it they come with the first token and
    with the end, which leaves more of the processor to the model.
    """

    rid: str
    input_ids: list[int]
    sampling: SamplingParams = SamplingParams()
    return_logprob: bool = False
    logprob_start: int | None = None
    top_logprobs: int = 0
    token_ids_logprob: tuple[int, ...] = ()
    cache_salt: str = ""
    extra_key: str = ""
    priority: int = 0
    deadline: float | None = None
    pin_ttl: float = 0.0
    program: str = ""
    calls_left: int | None = None
    stream: bool = True


class TokenLogprob(Struct, frozen=True, kw_only=True, array_like=True, omit_defaults=False):
    """Natural-log probability of one token under the model (before temperature and masks).

    ``logprob`` is None for a prompt's first token, which nothing predicts. ``top`` and
    ``chosen`` hold (token id, logprob) of the top-k and of ``token_ids_logprob``.
    """

    token_id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()
    chosen: tuple[tuple[int, float], ...] = ()


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """Why a request failed: ``status`` is the HTTP status that fits."""

    status: int
    message: str
    code: str = "internal_error"
    param: str | None = None
    pointer: str | None = None


class Finish(Struct, frozen=True, kw_only=True):
    """Why generation ended; ``matched`` is the stop string, regex or token id that ended it."""

    reason: Literal["stop", "length", "abort", "error"]
    matched: str | int | None = None
    error: ErrorInfo | None = None


class Delta(Struct, frozen=True, kw_only=True):
    """News of one sequence since its last ones. Deltas of an (rid, index) arrive in order.

    ``text`` is released text only: it never ends inside a character or a possible stop string.
    ``token_ids`` and ``logprobs`` cover the tokens made since. ``prompt_logprobs`` comes with
    the first delta of index 0. ``prompt_tokens`` and ``cached_tokens`` are constant,
    ``completion_tokens`` is cumulative.
    """

    rid: str
    index: int = 0
    text: str = ""
    token_ids: list[int] = []
    logprobs: list[TokenLogprob] = []
    prompt_logprobs: list[TokenLogprob] = []
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    retractions: int = 0
    finish: Finish | None = None


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What a client must know of the served model."""

    name: str
    path: str
    architecture: str
    context_length: int
    max_request_tokens: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    dtype: str
    device: str


class EngineStats(Struct, frozen=True, kw_only=True):
    """A snapshot of the engine; counters (``*_total``) only grow, the rest are current values."""

    running: int = 0
    waiting: int = 0
    compiling: int = 0
    pages_total: int = 0
    pages_free: int = 0
    pages_evictable: int = 0
    pages_protected: int = 0
    pages_private: int = 0
    pinned_pages: int = 0
    host_cache_bytes: int = 0
    disk_cache_bytes: int = 0
    page_size: int = 0
    steps_total: int = 0
    prompt_tokens_total: int = 0
    cached_tokens_total: int = 0
    computed_tokens_total: int = 0
    generated_tokens_total: int = 0
    forced_tokens_total: int = 0
    finished_total: int = 0
    aborted_total: int = 0
    failed_total: int = 0
    retracted_total: int = 0
    evicted_pages_total: int = 0
    host_pages_restored_total: int = 0
    disk_pages_restored_total: int = 0
    step_seconds_total: float = 0.0
