"""Time to first token of one prompt: cold, cached in memory, and cached on disk after a restart.

    python benchmarks/disk_cache.py [--tokens 1000] [--rounds 5]

Each round has a prompt of its own, which a new engine computes (cold), answers again (memory) and
writes to a folder. Then the engine is closed, and another one on the same folder answers (disk).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from phloem.bench import Timing, prompts, timed
from phloem.runtime.config import DEFAULT_MODEL, EngineConfig
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import GenerateRequest, SamplingParams

Timings = dict[str, list[Timing]]


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        timings, ends = run(options, Path(folder))
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    show(timings, ends, size / options.rounds / options.tokens, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    return parser.parse_args()


def run(options: argparse.Namespace, folder: Path) -> tuple[Timings, list[float]]:
    """Timings by where the prompt came from, and how long each engine took to close, in seconds."""
    timings: Timings = defaultdict(list)
    ends = []
    for round_ in range(options.rounds):
        for places in (("cold", "memory"), ("disk",)):
            client = local_client(
                EngineConfig(model=options.model, kv_tokens=32768, disk_cache=str(folder))
            )
            warm_up(client)
            for place in places:
                timings[place].append(ask(client, options.tokens, seed=1 + round_))
            start = time.perf_counter()
            client.close()
            ends.append(time.perf_counter() - start)
    return timings, ends


def warm_up(client: EngineClient) -> None:
    """Touch the weights with a prompt that has nothing in common with the others."""
    ask(client, 64, seed=0)


def ask(client: EngineClient, tokens: int, seed: int) -> Timing:
    [ids] = prompts(1, tokens, 0, client.info.vocab_size, seed)
    params = SamplingParams(max_new_tokens=1, temperature=0.0, ignore_eos=True)
    request = GenerateRequest(rid=f"{seed}", input_ids=ids, sampling=params)
    return asyncio.run(timed(client, request, time.perf_counter()))


def show(
    timings: Timings, ends: list[float], token_bytes: float, options: argparse.Namespace
) -> None:
    medians = {
        place: statistics.median(timing.first_token for timing in each)
        for place, each in timings.items()
    }
    if options.json:
        print(json.dumps({"ttft_s": medians, "close_s": statistics.median(ends)}))
        return
    print(f"{options.tokens} tokens in, {token_bytes / 1024:.1f} KiB on disk each")
    for place, seconds in medians.items():
        cached = timings[place][0].cached_tokens
        ratio = medians["cold"] / seconds
        print(f"{place:8}{seconds * 1e3:10.1f} ms to first token{ratio:8.1f} x{cached:6} cached")
    print(f"closing {statistics.median(ends):.2f} s")


if __name__ == "__main__":
    main()
