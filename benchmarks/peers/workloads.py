"""What contestants are timed at. A workload returns values by metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from peers.contestant import Contestant, ContestantError
from peers.peer import Output
from phloem.bench import prompts


@dataclass(frozen=True)
class Sizes:
    """Makes a round's prompts of random tokens, new in every round, alike for all contestants.

    ``divisor`` shrinks every length, for a quick look at whether all contestants work.
    """

    vocab_size: int
    seed: int
    divisor: int = 1

    def prompts(self, count: int, shared: int, own: int, variety: int = 0) -> list[list[int]]:
        seed = self.seed * 100 + variety
        return prompts(count, self.length(shared), self.length(own), self.vocab_size, seed)

    def length(self, tokens: int) -> int:
        return tokens // self.divisor


Values = dict[str, float]
Workload = Callable[[Contestant, Sizes], Values]


def prefill(contestant: Contestant, sizes: Sizes) -> Values:
    outputs = contestant.generate(sizes.prompts(1, 0, 512, variety=1), 1)
    return {"prefill": outputs[0].times[0]}


def decode(batch: int, contestant: Contestant, sizes: Sizes) -> Values:
    requests = sizes.prompts(batch, 0, 256, variety=10 + batch)
    return {f"decode-{batch}": joint_rate(contestant.generate(requests, sizes.length(64)))}


def joint_rate(outputs: Sequence[Output]) -> float:
    """Tokens per second while all sequences decode: after the last one's first token, until the
    first one's last.

    Raises:
        ContestantError: there is no such time.
    """
    start = max(output.times[0] for output in outputs)
    end = min(output.times[-1] for output in outputs)
    tokens = sum(start < time <= end for output in outputs for time in output.times)
    if end <= start:
        raise ContestantError("it never decoded all sequences together")
    return tokens / (end - start)


def first_token(contestant: Contestant, sizes: Sizes) -> Values:
    requests = sizes.prompts(1, 0, 1000, variety=2)
    cold, warm = (contestant.generate(requests, 1)[0].times[0] for _ in range(2))
    return {"ttft-cold": cold, "ttft-warm": warm}


def shared_prefix(contestant: Contestant, sizes: Sizes) -> Values:
    requests = sizes.prompts(32, 1024, 32, variety=3)
    outputs = contestant.generate(requests, sizes.length(32))
    return {"shared": max(output.times[-1] for output in outputs)}


def chat(contestant: Contestant, sizes: Sizes) -> Values:
    conversation: list[int] = []
    wall = 0.0
    for turn in range(4):
        conversation += sizes.prompts(1, 0, 100, variety=50 + turn)[0]
        answer = contestant.generate([conversation], sizes.length(50))[0]
        conversation += answer.tokens
        wall += answer.times[-1]
    return {"chat": wall}


WORKLOADS: Mapping[str, Workload] = {
    "prefill": prefill,
    "decode-1": partial(decode, 1),
    "decode-8": partial(decode, 8),
    "decode-32": partial(decode, 32),
    "ttft": first_token,
    "shared": shared_prefix,
    "chat": chat,
}


@dataclass(frozen=True)
class Metric:
    title: str
    unit: str
    higher_is_better: bool = False


METRICS: Mapping[str, Metric] = {
    "prefill": Metric("512 tokens in, time to first token", "s"),
    "decode-1": Metric("decode, batch 1, 256 tokens before", "tok/s", True),
    "decode-8": Metric("decode, batch 8, 256 tokens before", "tok/s", True),
    "decode-32": Metric("decode, batch 32, 256 tokens before", "tok/s", True),
    "ttft-cold": Metric("1,000 tokens in, time to first token", "s"),
    "ttft-warm": Metric("the same prompt again", "s"),
    "shared": Metric("32 x (1,024 shared + 32 own) in, 32 out", "s"),
    "chat": Metric("chat, 4 turns of 100 in, 50 out", "s"),
}
