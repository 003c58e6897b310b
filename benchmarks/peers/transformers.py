"""Hugging Face transformers' ``generate``.

It has no prefix cache. The caller may keep one conversation's KV cache by hand and crop it to
what a new prompt shares, as its guide shows; that is done here for single prompts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import transformers

from peers.peer import Output, Settings, native_bfloat16, shared_length


class Clock(transformers.StoppingCriteria):
    """Notes when each step's tokens are there; stops nothing."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.times: list[float] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        self.times.append(time.perf_counter() - self._start)
        return torch.zeros(len(input_ids), dtype=torch.bool)


class Transformers:
    def __init__(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)
        dtype = torch.bfloat16 if native_bfloat16() else torch.float32
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            settings.folder, dtype=dtype
        )
        self._model.generation_config.eos_token_id = None
        self._known: list[int] = []
        self._cache = transformers.DynamicCache(config=self._model.config)
        self.description = f"transformers {transformers.__version__}, {dtype}".replace("torch.", "")

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        clock = Clock()
        ids = torch.tensor(prompts)
        result = self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=self._kept(prompts[0]) if len(prompts) == 1 else None,
            max_new_tokens=length,
            do_sample=False,
            stopping_criteria=[clock],
            return_dict_in_generate=True,
        )
        if len(prompts) == 1:
            self._known, self._cache = result.sequences[0].tolist(), result.past_key_values
        return [Output(row[ids.shape[1] :].tolist(), clock.times) for row in result.sequences]

    def _kept(self, prompt: Sequence[int]) -> Any:
        """The last single prompt's cache, cropped so that at least one token is to be computed."""
        shared = shared_length(self._known[:-1], prompt[:-1])
        if not shared:
            return transformers.DynamicCache(config=self._model.config)
        if surplus := self._cache.get_seq_length() - shared:
            self._cache.crop(-surplus)
        return self._cache


def load(settings: Settings) -> Transformers:
    return Transformers(settings)
