"""Measure throughput and latency of a model on this machine.

``requests`` measures the whole engine: all requests are submitted at once, and their prompts are
random tokens, so only --shared-tokens are shared. ``step`` measures the model's step by itself
against what the machine can do, with --profile op by op (native ops).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING

from phloem.arguments import add_options, read_options

if TYPE_CHECKING:
    from phloem.bench import Report
    from phloem.runtime.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from phloem.runtime.config import EngineConfig

    parser.add_argument("what", nargs="?", choices=["requests", "step"], default="requests")
    parser.add_argument("--profile", action="store_true", help="of a step: time by op")
    parser.add_argument("--requests", type=positive, default=8, metavar="N")
    parser.add_argument("--shared-tokens", type=int, default=0, metavar="N")
    parser.add_argument("--prompt-tokens", type=positive, default=256, metavar="N")
    parser.add_argument("--output-tokens", type=positive, default=64, metavar="N")
    parser.add_argument("--repeats", type=positive, default=3, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object per run")
    add_options(parser, EngineConfig)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def run(namespace: argparse.Namespace) -> int:
    from phloem.runtime.config import EngineConfig
    from phloem.runtime.errors import RequestError
    from phloem.runtime.in_process import local_client

    if namespace.what == "step":
        from phloem.bench_step import report

        for line in report(read_options(namespace, EngineConfig), namespace.profile):
            print(line)
        return 0
    if not 0 <= namespace.shared_tokens < namespace.prompt_tokens:
        raise RequestError("--shared-tokens must be at least 0 and less than --prompt-tokens")
    client = local_client(read_options(namespace, EngineConfig))
    try:
        asyncio.run(repeat(client, namespace))
    finally:
        client.close()
    return 0


async def repeat(client: Client, namespace: argparse.Namespace) -> None:
    from phloem.bench import measure, prompts
    from phloem.runtime.protocol import GenerateRequest, SamplingParams

    params = SamplingParams(
        max_new_tokens=namespace.output_tokens, temperature=0.0, ignore_eos=True
    )
    for round_ in range(namespace.repeats):
        await client.flush_cache()
        batch = prompts(
            namespace.requests,
            namespace.shared_tokens,
            namespace.prompt_tokens - namespace.shared_tokens,
            client.info.vocab_size,
            seed=round_,
        )
        report = await measure(
            client,
            [
                GenerateRequest(rid=f"bench-{round_}-{i}", input_ids=ids, sampling=params)
                for i, ids in enumerate(batch)
            ],
        )
        print(json.dumps(report.as_dict()) if namespace.json else show(report))


def show(report: Report) -> str:
    return (
        f"{report.requests} requests in {report.wall:.2f} s: "
        f"prefill {report.prefill_rate:.0f} tok/s, output {report.output_rate:.1f} tok/s, "
        f"TTFT p50 {report.ttft_p50 * 1e3:.0f} ms, p99 {report.ttft_p99 * 1e3:.0f} ms, "
        f"hit rate {report.hit_rate:.0%}"
    )
