"""What a ``gen`` or a whole run may set: sampling and log-probability options, all optional."""

from __future__ import annotations

from typing import Any

import msgspec

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, SamplingParams


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options by SGLang's names; None means not set here.

    ``logprob_start_len`` is the first prompt position whose log-probability is reported (-1:
    output only), ``top_logprobs_num`` the number of alternatives beside each token. The rest is
    explained at ``phloem.runtime.protocol.SamplingParams``.
    """

    max_new_tokens: int | None = None
    min_new_tokens: int | None = None
    n: int | None = None
    stop: tuple[str, ...] | None = None
    stop_token_ids: tuple[int, ...] | None = None
    stop_regex: tuple[str, ...] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None
    seed: int | None = None
    logit_bias: dict[int, float] | None = None
    return_logprob: bool | None = None
    logprob_start_len: int | None = None
    top_logprobs_num: int | None = None

    def over(self, defaults: Options) -> Options:
        """These options where they are set, ``defaults`` elsewhere."""
        return msgspec.structs.replace(defaults, **_set_fields(self))

    def sampling(self, constraint: Constraint | None) -> SamplingParams:
        """The part of the options that the sampler reads."""
        chosen = {
            name: value
            for name, value in _set_fields(self).items()
            if name in SamplingParams.__struct_fields__
        }
        return SamplingParams(**chosen, constraint=constraint)


OPTION_NAMES = frozenset(Options.__struct_fields__)


def make_options(values: dict[str, Any]) -> Options:
    """Check the types of ``values`` (by option name; None means not set).

    Raises:
        RequestError: a value has the wrong type; ``param`` is its name.
    """
    given = {name: value for name, value in values.items() if value is not None}
    for name in ("stop", "stop_regex"):
        if isinstance(given.get(name), str):
            given[name] = (given[name],)
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, Options)
        except msgspec.ValidationError as error:
            problem = str(error).partition(" - at ")[0]
            raise RequestError(f"{name}: {problem}", param=name) from None
    return msgspec.convert(given, Options)


def _set_fields(options: Options) -> dict[str, Any]:
    return {
        name: value
        for name in options.__struct_fields__
        if (value := getattr(options, name)) is not None
    }
