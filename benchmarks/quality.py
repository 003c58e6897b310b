"""What rounding costs: perplexity, and the divergence from exact arithmetic on the same weights.

    python benchmarks/quality.py [--model M] [--tokens 20000] [--dense]

The text is the manual that comes with Python (pydoc's topics), cut into stretches of 512 tokens.
KL is the mean over tokens of the divergence of a mode's next-token distribution from that of
float32 arithmetic on the same stored weights; "same" is how often both find the same token the
likeliest.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pydoc_data.topics import topics
from typing import Any

import torch
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import Step
from phloem.runtime.bootstrap import load, make_kv_pool
from phloem.runtime.config import DEFAULT_MODEL, EngineConfig

STRETCH = 512
EXACT = {"ops": "reference", "dtype": "float32"}
MODES: dict[str, dict[str, Any]] = {
    "default: int8 activations, bf16 KV": {},
    "int8 activations, float32 KV": {"kv_dtype": "float32"},
    "w8a8: int8 weights by row, int8 activations": {"quantization": "w8a8"},
    "int8 activations, int8 KV": {"kv_dtype": "int8"},
    "float32 activations, bf16 KV": {"cpu_activations": "float32"},
    "float32 activations, int8 KV": {"cpu_activations": "float32", "kv_dtype": "int8"},
    "float32 all through": {"dtype": "float32"},
    "plain torch, bfloat16": {"ops": "reference", "dtype": "bfloat16"},
}
DENSE_MODES: dict[str, dict[str, Any]] = {
    "bfloat16 weights": {},
    "int8 weights": {"quantization": "int8"},
    "int4 weights": {"quantization": "int4"},
    "int8 weights, float32 activations": {"quantization": "int8", "cpu_activations": "float32"},
    "int4 weights, float32 activations": {"quantization": "int4", "cpu_activations": "float32"},
}
"""For a model whose weights are stored dense."""


@dataclass
class Score:
    """Sums over the tokens seen so far."""

    tokens: int = 0
    loss: float = 0.0
    divergence: float = 0.0
    same: int = 0

    def add(self, exact: Tensor, found: Tensor, following: Tensor) -> None:
        """Log-probabilities [n, V] of both, and the n tokens that follow."""
        self.tokens += len(following)
        self.loss -= found.gather(1, following[:, None]).sum().item()
        self.divergence += (exact.exp() * (exact - found)).sum().item()
        self.same += int((exact.argmax(-1) == found.argmax(-1)).sum())

    def row(self, name: str) -> str:
        n = self.tokens
        perplexity, same = math.exp(self.loss / n), self.same / n
        return f"| {name} | {perplexity:.3f} | {self.divergence / n:.5f} | {same:.1%} |"


class Runner:
    """A model that scores stretches of tokens, computed in one way."""

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        config = EngineConfig(model=model, kv_tokens=STRETCH, **options)
        loaded = load(config)
        self.tokenizer = loaded.tokenizer
        kv = make_kv_pool(config, loaded.model, loaded.ops)
        layers = [kv.layer(i) for i in range(loaded.model.kv_geometry.num_layers)]
        self._pages = torch.arange(kv.num_pages, dtype=torch.int32)[None]
        self._page_size = config.page_size
        self._step: Step = loaded.ops.compile(loaded.model.logits, layers)

    @torch.inference_mode()
    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """int64 [n] -> float32 [n, V]."""
        n = len(tokens)
        positions = torch.arange(n)
        batch = RaggedBatch(
            positions=positions,
            slots=positions,
            query_start=torch.tensor([0, n], dtype=torch.int32),
            kv_len=torch.tensor([n], dtype=torch.int32),
            page_table=self._pages,
            page_size=self._page_size,
        )
        return self._step(tokens, batch, positions).log_softmax(-1)


def stretches(runner: Runner, count: int) -> Iterator[Tensor]:
    text = "\n\n".join(topics[name] for name in sorted(topics))
    ids = torch.tensor(runner.tokenizer.encode(text[: 12 * count])[:count])
    yield from ids.split(STRETCH)


def main() -> None:
    options = parse()
    modes = DENSE_MODES if options.dense else MODES
    exact = Runner(options.model, EXACT)
    runners = {name: Runner(options.model, mode) for name, mode in modes.items()}
    scores = {name: Score() for name in runners}
    baseline = Score()
    for tokens in stretches(exact, options.tokens):
        following = tokens[1:]
        expected = exact.log_probabilities(tokens)[:-1]
        baseline.add(expected, expected, following)
        for name, runner in runners.items():
            scores[name].add(expected, runner.log_probabilities(tokens)[:-1], following)
    print("| arithmetic | perplexity | KL | same |\n|---|---|---|---|")
    print(baseline.row("plain torch, float32"))
    for name, score in scores.items():
        print(score.row(name))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--tokens", type=int, default=20000)
    parser.add_argument("--dense", action="store_true", help="modes for weights stored dense")
    return parser.parse_args()


if __name__ == "__main__":
    main()
