"""llama.cpp through llama-cpp-python's low-level interface: one context, a KV stream per sequence.

Variant ``q4_1`` runs the file as it is, ``q4_0`` a lossy requantisation, as llama.cpp has its
fastest kernels for that format. Prefixes are shared by hand, with what the interface offers: a
lone prompt keeps what it has in common with the sequence before, and what all prompts of a batch
have in common is computed once and copied to each stream. Detokenising is not in what is timed.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import llama_cpp
import numpy as np

from peers.peer import MAX_LENGTH, MAX_SEQUENCES, Output, Settings, shared_length

CHUNK = 2048
"""Tokens per call; llama.cpp cuts it into steps of 512."""

Q4_0_FILE = 2
Q8_0 = 8

Row = tuple[int, int, int, bool]
"""Token, position, sequence, whether the token after it is wanted."""


class LlamaCpp:
    def __init__(self, settings: Settings) -> None:
        path, note = Path(settings.gguf), "Q4_1 as shipped"
        if settings.variant == "q4_0":
            path, note = requantised(path, Path(settings.cache)), "requantised to Q4_0 (lossy)"
        self._context = make_context(path, settings.threads)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(CHUNK, 0, 1)
        self._known: list[int] = []
        self.description = f"llama-cpp-python {llama_cpp.__version__}, {note}"

    def generate(self, prompts: Sequence[Sequence[int]], length: int) -> list[Output]:
        start = time.perf_counter()
        outputs = [Output([], []) for _ in prompts]
        done = self._share(prompts)
        rows = [row for index, each in enumerate(prompts) for row in prompt_rows(index, each, done)]
        for position in range(len(prompts[0]), len(prompts[0]) + length):
            for index, token in self._decode(rows):
                outputs[index].tokens.append(token)
                outputs[index].times.append(time.perf_counter() - start)
            rows = [(each.tokens[-1], position, index, True) for index, each in enumerate(outputs)]
        self._known = [*prompts[0], *outputs[0].tokens[:-1]]
        return outputs

    def _share(self, prompts: Sequence[Sequence[int]]) -> int:
        """Bring what all prompts share, short of a last token, into every sequence's KV.

        Returns how many tokens that is.
        """
        shared = min(shared_length(prompts[0][:-1], prompt) for prompt in prompts)
        kept = shared_length(self._known, prompts[0][:shared])
        llama_cpp.llama_memory_seq_rm(self._memory, 0, kept, -1)
        for sequence in range(1, MAX_SEQUENCES):
            llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        if len(prompts) == 1 or not shared:
            return kept
        list(self._decode([(prompts[0][at], at, 0, False) for at in range(kept, shared)]))
        for sequence in range(1, len(prompts)):
            llama_cpp.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
        return shared

    def _decode(self, rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
        """Compute the rows; yields (sequence, next token) where that is wanted."""
        for begin in range(0, len(rows), CHUNK):
            chunk = rows[begin : begin + CHUNK]
            self._fill(chunk)
            if status := llama_cpp.llama_decode(self._context, self._batch):
                raise RuntimeError(f"llama_decode returned {status}")
            sequences = [sequence for _, _, sequence, wanted in chunk if wanted]
            yield from zip(sequences, self._choose(len(sequences)), strict=True)

    def _fill(self, rows: Sequence[Row]) -> None:
        batch = self._batch
        batch.n_tokens = len(rows)
        for index, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[index] = token
            batch.pos[index] = position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = wanted

    def _choose(self, count: int) -> list[int]:
        """The likeliest token of each logits row."""
        if not count:
            return []
        model = llama_cpp.llama_get_model(self._context)
        width = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        logits = llama_cpp.llama_get_logits(self._context)
        return np.ctypeslib.as_array(logits, (count, width)).argmax(axis=1).tolist()


def prompt_rows(sequence: int, prompt: Sequence[int], done: int) -> list[Row]:
    last = len(prompt) - 1
    return [(prompt[at], at, sequence, at == last) for at in range(done, len(prompt))]


def make_context(path: Path, threads: int) -> llama_cpp.llama_context_p:
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        os.fsencode(path), llama_cpp.llama_model_default_params()
    )
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = MAX_SEQUENCES * MAX_LENGTH
    params.n_seq_max = MAX_SEQUENCES
    params.n_batch = CHUNK
    params.n_threads = params.n_threads_batch = threads
    context = llama_cpp.llama_init_from_model(model, params) if model else None
    if not context:
        raise RuntimeError(f"llama.cpp cannot load {path}")
    return context


def requantised(path: Path, cache: Path) -> Path:
    """The layers in Q4_0; the embeddings stay in Q8_0, as they are in the file."""
    target = cache / f"{path.stem}.Q4_0.gguf"
    if not target.exists():
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype = Q4_0_FILE
        params.allow_requantize = True
        params.output_tensor_type = params.token_embedding_type = Q8_0
        fresh = target.with_name(target.name + ".new")
        status = llama_cpp.llama_model_quantize(
            os.fsencode(path), os.fsencode(fresh), ctypes.byref(params)
        )
        if status:
            raise RuntimeError(f"llama_model_quantize returned {status}")
        fresh.rename(target)
    return target


def load(settings: Settings) -> LlamaCpp:
    return LlamaCpp(settings)
