"""vLLM's engine in this process, with its prefix cache; it detokenises, too."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence

from peers.peer import MAX_LENGTH, MAX_SEQUENCES, Output, Settings, native_bfloat16

CACHE_GIB = 2


class Vllm:
    def __init__(self, settings: Settings) -> None:
        # vLLM reads these when it is imported.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(CACHE_GIB)
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{settings.threads - 1}"
        import vllm

        dtype = "bfloat16" if native_bfloat16() else "float32"
        self._engine = vllm.LLMEngine.from_engine_args(
            vllm.EngineArgs(
                settings.folder,
                dtype=dtype,
                max_model_len=MAX_LENGTH,
                max_num_seqs=MAX_SEQUENCES,
                enable_prefix_caching=True,
            )
        )
        self._ids = itertools.count()
        self.description = f"vllm {vllm.__version__}, {dtype}"

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        start = time.perf_counter()
        params = SamplingParams(
            max_tokens=length,
            temperature=0.0,
            ignore_eos=True,
            output_kind=RequestOutputKind.DELTA,
        )
        outputs = {str(next(self._ids)): Output([], []) for _ in prompts}
        for name, prompt in zip(outputs, prompts, strict=True):
            self._engine.add_request(name, {"prompt_token_ids": list(prompt)}, params)
        while self._engine.has_unfinished_requests():
            for news in self._engine.step():
                tokens = news.outputs[0].token_ids
                outputs[news.request_id].tokens.extend(tokens)
                outputs[news.request_id].times.extend([time.perf_counter() - start] * len(tokens))
        return list(outputs.values())


def load(settings: Settings) -> Vllm:
    return Vllm(settings)
