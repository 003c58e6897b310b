"""N requests that share a long prefix, with the prefix cache on and off, in one run.

    python benchmarks/shared_prefix.py [--requests 32] [--shared 1024] [--own 32] [--output 32]

Both engines run in this process on the same weights' file; rounds are interleaved, so that the
machine's noise falls on both alike. The cached engine starts each round with an empty cache, so
its hits are between the round's own requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics

from phloem.bench import Report, measure, prompts
from phloem.runtime.config import DEFAULT_MODEL, EngineConfig
from phloem.runtime.engine_client import EngineClient
from phloem.runtime.in_process import local_client
from phloem.runtime.protocol import GenerateRequest, SamplingParams


def main() -> None:
    options = parse()
    clients = {
        name: local_client(
            EngineConfig(model=options.model, prefix_cache=cached, kv_tokens=options.kv_tokens)
        )
        for name, cached in (("cached", True), ("uncached", False))
    }
    try:
        reports = asyncio.run(run(clients, options))
    finally:
        for client in clients.values():
            client.close()
    show(reports, options.json)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--shared", type=int, default=1024)
    parser.add_argument("--own", type=int, default=32)
    parser.add_argument("--output", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kv-tokens", type=int, default=48 * 1024)
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")
    return parser.parse_args()


async def run(
    clients: dict[str, EngineClient], options: argparse.Namespace
) -> dict[str, list[Report]]:
    reports: dict[str, list[Report]] = {name: [] for name in clients}
    for round_ in range(options.rounds):
        for name, client in clients.items():
            await client.flush_cache()
            reports[name].append(await measure(client, requests(client, options, round_)))
    return reports


def requests(
    client: EngineClient, options: argparse.Namespace, round_: int
) -> list[GenerateRequest]:
    params = SamplingParams(max_new_tokens=options.output, temperature=0.0, ignore_eos=True)
    batch = prompts(
        options.requests, options.shared, options.own, client.info.vocab_size, seed=round_
    )
    return [
        GenerateRequest(rid=f"{round_}-{index}", input_ids=ids, sampling=params)
        for index, ids in enumerate(batch)
    ]


def show(reports: dict[str, list[Report]], as_json: bool) -> None:
    ratio = statistics.median(
        cached.wall / uncached.wall
        for cached, uncached in zip(reports["cached"], reports["uncached"], strict=True)
    )
    if as_json:
        rounds = {name: [report.as_dict() for report in each] for name, each in reports.items()}
        print(json.dumps({"cached_over_uncached_wall": ratio, **rounds}))
        return
    columns = ("wall s", "prefill tok/s", "output tok/s", "TTFT p50 s", "TTFT p99 s", "hit rate")
    print(f"{'':10}" + "".join(f"{column:>15}" for column in columns))
    for name, rounds_ in reports.items():
        for r in rounds_:
            values = (r.wall, r.prefill_rate, r.output_rate, r.ttft_p50, r.ttft_p99, r.hit_rate)
            print(f"{name:10}" + "".join(f"{value:15.2f}" for value in values))
    print(f"cached / uncached wall time: {ratio:.3f}")


if __name__ == "__main__":
    main()
