"""OpenVINO GenAI's continuous batching with its prefix cache, weights in int8.

The export quantises the float32 weights, so that they are not bit for bit those of the GGUF file.
Detokenising is not in what is timed.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino
import openvino_genai

from peers.peer import MAX_SEQUENCES, Output, Settings

CACHE_GIB = 2


class OpenVino:
    def __init__(self, settings: Settings) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GIB
        scheduler.max_num_seqs = MAX_SEQUENCES
        scheduler.enable_prefix_caching = True
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            exported(Path(settings.folder), Path(settings.cache)),
            scheduler,
            "CPU",
            {"INFERENCE_NUM_THREADS": settings.threads},
        )
        self._ids = itertools.count()
        self.description = f"openvino-genai {openvino_genai.__version__}, int8"

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        start = time.perf_counter()
        config = greedy(length)
        handles = [
            self._pipeline.add_request(next(self._ids), openvino.Tensor(np.array([prompt])), config)
            for prompt in prompts
        ]
        outputs = [Output([], []) for _ in prompts]
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            for handle, output in zip(handles, outputs, strict=True):
                if handle.can_read():
                    for news in handle.read().values():
                        output.tokens.extend(news.generated_ids)
                        output.times.extend([time.perf_counter() - start] * len(news.generated_ids))
        return outputs


def greedy(length: int) -> openvino_genai.GenerationConfig:
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = length
    config.ignore_eos = True
    config.do_sample = False
    return config


def exported(folder: Path, cache: Path) -> Path:
    """The model as optimum-intel exports it, made once."""
    target = cache / f"{folder.name}-openvino-int8"
    if not target.exists():
        fresh = target.with_name(target.name + ".new")
        options = ["--task", "text-generation-with-past", "--weight-format", "int8"]
        command = [sys.executable, "-m", "optimum.commands.optimum_cli", "export", "openvino"]
        subprocess.run([*command, "--model", folder, *options, fresh], check=True)
        fresh.rename(target)
    return target


def load(settings: Settings) -> OpenVino:
    return OpenVino(settings)
