"""Whether a request can be served as sent; every client asks before anything is queued.

Names between backquotes in the messages are fields of the wire types, so that an API that calls
them otherwise can put its own names there.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import GenerateRequest, ModelInfo, SamplingParams, Struct
from phloem.runtime.text.stop import StopMatcher

MAX_STOPS = 32
MAX_LABEL_CHARS = 256
MAX_CHOSEN_TOKENS = 1024
MAX_LOGIT_BIAS = 100.0
MAX_PIN_SECONDS = 3600.0
MAX_CALLS_LEFT = 10_000

INT32 = (1 << 31) - 1
INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Bound:
    """The numbers that a field may hold: an interval, perhaps open below, perhaps of integers."""

    low: float
    high: float = math.inf
    above_low: bool = False
    integer: bool = False

    def allows(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.integer else int | float):
            return False
        above = value > self.low if self.above_low else value >= self.low
        return above and value <= self.high and value != math.inf

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a number"
        if self.high == math.inf:
            return f"{kind} {'above' if self.above_low else 'of at least'} {self.low:g}"
        low, high = (f"{end:g}" if abs(end) < 1e6 else str(end) for end in (self.low, self.high))
        return f"{kind} in {'(' if self.above_low else '['}{low}, {high}]"


SAMPLING_BOUNDS: Mapping[str, Bound] = {
    "max_new_tokens": Bound(0, INT32, integer=True),
    "min_new_tokens": Bound(0, INT32, integer=True),
    "temperature": Bound(0, 100),
    "top_p": Bound(0, 1, above_low=True),
    "min_p": Bound(0, 1),
    "frequency_penalty": Bound(-2, 2),
    "presence_penalty": Bound(-2, 2),
    "repetition_penalty": Bound(0.01, 2),
    "seed": Bound(-INT64 - 1, INT64, integer=True),
    "n": Bound(1, 128, integer=True),
}

REQUEST_BOUNDS: Mapping[str, Bound] = {
    "top_logprobs": Bound(0, 20, integer=True),
    "priority": Bound(-INT32 - 1, INT32, integer=True),
    "deadline": Bound(0, above_low=True),
    "pin_ttl": Bound(0, MAX_PIN_SECONDS),
    "calls_left": Bound(0, MAX_CALLS_LEFT, integer=True),
}


def validate(request: GenerateRequest, info: ModelInfo) -> None:
    """Check every field of ``request`` against its limits and those of the model.

    Raises:
        RequestError: a field is out of its limits; ``param`` names it and the message tells both.
    """
    sampling = request.sampling
    _check_bounds(request, REQUEST_BOUNDS)
    _check_bounds(sampling, SAMPLING_BOUNDS)
    _check_top_k(sampling.top_k)
    _check_labels(request)
    _check_stops(sampling)
    _check_logit_bias(sampling.logit_bias, info.vocab_size)
    check_tokens("stop_token_ids", sampling.stop_token_ids, info.vocab_size)
    check_tokens("token_ids_logprob", request.token_ids_logprob, info.vocab_size)
    _check_count("token_ids_logprob", request.token_ids_logprob, MAX_CHOSEN_TOKENS)
    _check_prompt(request, info)
    _check_length(request, info)


def _refuse(param: str, problem: str, code: str = "invalid_value") -> RequestError:
    return RequestError(f"`{param}` {problem}", param=param, code=code)


def _check_bounds(source: Struct, bounds: Mapping[str, Bound]) -> None:
    for name, bound in bounds.items():
        value = getattr(source, name)
        if value is not None and not bound.allows(value):
            raise _refuse(name, f"must be {bound}, got {value!r}")


def _check_top_k(top_k: int) -> None:
    if top_k != -1 and not Bound(1, INT32, integer=True).allows(top_k):
        raise _refuse("top_k", f"must be -1 (no limit) or in [1, {INT32}], got {top_k!r}")


def _check_labels(request: GenerateRequest) -> None:
    if not request.rid:
        raise _refuse("rid", "must not be empty")
    for name in ("rid", "cache_salt", "extra_key", "program"):
        label = getattr(request, name)
        _check_text(name, label)
        if len(label) > MAX_LABEL_CHARS:
            raise _refuse(name, f"has {len(label)} characters, the limit is {MAX_LABEL_CHARS}")


def _check_text(name: str, text: str) -> None:
    """A lone surrogate is no character: it could not cross to the engine."""
    if not isinstance(text, str):
        raise _refuse(name, f"must be a string, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _refuse(name, f"has a lone surrogate at character {error.start}") from None


def _check_count(name: str, items: Collection[object], limit: int) -> None:
    if len(items) > limit:
        raise _refuse(name, f"has {len(items)} items, the limit is {limit}")


def _check_stops(sampling: SamplingParams) -> None:
    for name in ("stop", "stop_regex"):
        stops = getattr(sampling, name)
        _check_count(name, stops, MAX_STOPS)
        for stop in stops:
            _check_text(name, stop)
    if sampling.stop or sampling.stop_regex:
        StopMatcher(sampling.stop, sampling.stop_regex)  # refuses what it cannot look for


def _check_logit_bias(bias: Mapping[int, float], vocab_size: int) -> None:
    bound = Bound(-MAX_LOGIT_BIAS, MAX_LOGIT_BIAS)
    for token, value in bias.items():
        if not bound.allows(value):
            raise _refuse("logit_bias", f"of token {token} must be {bound}, got {value!r}")
    check_tokens("logit_bias", bias, vocab_size)


def check_tokens(name: str, tokens: Collection[int], vocab_size: int) -> None:
    """Refuse what is not a token id of the model; the message calls the field ``name``."""
    if not tokens:
        return
    try:
        ids = np.frombuffer(array("q", tokens), dtype=np.int64)
    except (TypeError, OverflowError):
        raise _refuse(name, "has an item that is not a token id") from None
    for extreme in (int(ids.min()), int(ids.max())):
        if not 0 <= extreme < vocab_size:
            raise _refuse(
                name, f"has the token id {extreme}, the model's ids are 0 to {vocab_size - 1}"
            )


def _check_prompt(request: GenerateRequest, info: ModelInfo) -> None:
    if not request.input_ids:
        raise _refuse("input_ids", "is empty; it needs at least one token")
    check_tokens("input_ids", request.input_ids, info.vocab_size)
    start, length = request.logprob_start, len(request.input_ids)
    if start is not None and not Bound(0, length, integer=True).allows(start):
        raise _refuse(
            "logprob_start", f"must be in [0, {length}] for a prompt of {length}, got {start!r}"
        )


def token_limit(info: ModelInfo) -> int:
    """The most tokens, prompt and output together, that one request may have."""
    return min(info.context_length, info.max_request_tokens)


def _check_length(request: GenerateRequest, info: ModelInfo) -> None:
    prompt, wanted = len(request.input_ids), request.sampling.max_new_tokens
    limit = token_limit(info)
    what = "context length" if limit == info.context_length else "KV cache's capacity"
    room = limit - prompt
    code = "context_length_exceeded"
    if room < 0 or (room == 0 and wanted != 0):
        raise _refuse("input_ids", f"has {prompt} tokens, too many for the {what} of {limit}", code)
    if wanted is not None and wanted > room:
        raise _refuse(
            "max_new_tokens",
            f"is {wanted}, but after the prompt's {prompt} tokens the {what} of {limit} has room "
            f"for {room}",
            code,
        )
    least = request.sampling.min_new_tokens
    most = room if wanted is None else wanted
    if least > most:
        raise _refuse("min_new_tokens", f"is {least}, more than the {most} tokens allowed")
