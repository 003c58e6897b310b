"""Phloem and other engines on the CPU: the same model, the same token ids, greedy, interleaved.

    python benchmarks/cpu_peers.py [--rounds 5] [--python vllm=/venvs/vllm/bin/python ...]

Each contestant has a process of its own, which idles while others run. Its interpreter is this
one unless ``--python`` names another; a contestant whose package is not there is skipped. All
start from the model's GGUF file. Times are what a caller sees: from the call to having a token.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from peers.contestant import Contestant, ContestantError
from peers.hf_folder import hf_folder
from peers.machine import inspect, listen
from peers.peer import Settings
from peers.report import Report, Round, markdown, plot, write_json
from peers.workloads import WORKLOADS, Sizes, Values

from phloem.runtime.store import DEFAULT_MODEL, resolve
from phloem.runtime.text import Tokenizer, load_tokenizer

ENGINES = (
    "phloem", "phloem:w8a8", "llama.cpp:q4_1", "llama.cpp:q4_0", "transformers", "openvino", "vllm",
)  # fmt: skip
FOLDER_ENGINES = ("transformers", "openvino", "vllm")
"""Engines that start from the Hugging Face folder made of the GGUF file."""

QUICK_DIVISOR = 8
SENTENCE = "The capital of France is"


def main() -> None:
    options = parse()
    files = resolve(options.model)
    tokenizer = load_tokenizer(files)
    options.cache.mkdir(parents=True, exist_ok=True)
    contestants = start(options, files.path)
    try:
        for contestant in contestants:
            introduce(contestant, tokenizer)
        about = {contestant.name: contestant.description for contestant in contestants}
        report = Report(inspect(options.threads), about, QUICK_DIVISOR if options.quick else 1)
        for seed in range(options.rounds):
            report.noise.append(listen())
            print(f"round {seed + 1} of {options.rounds}: {report.noise[-1]}")
            sizes = Sizes(tokenizer.vocab_size, seed, report.divisor)
            report.rounds.append(run_round(contestants, options.workloads, sizes))
            save(report, options)
    finally:
        for contestant in contestants:
            contestant.close()
    print(markdown(report))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=DEFAULT_MODEL, help="name in the store or a .gguf file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", type=names(ENGINES), default=ENGINES, metavar="NAME,...")
    parser.add_argument(
        "--workloads", type=names(WORKLOADS), default=tuple(WORKLOADS), metavar="NAME,..."
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--python", type=interpreter, action="append", default=[], metavar="ENGINE=PATH",
        help="interpreter of an engine, such as vllm=/venvs/vllm/bin/python",
    )  # fmt: skip
    parser.add_argument(
        "--cache", type=absolute, default=Path.home() / ".cache/phloem/peers",
        help="folder for what engines convert the model to, and their logs",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="an eighth of every length")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="needs matplotlib")
    options = parser.parse_args()
    if options.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib")
    return options


def names(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Reads a comma-separated choice from ``known``."""

    def read(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"not known: {', '.join(sorted(unknown))}")
        return chosen

    return read


def interpreter(text: str) -> tuple[str, str]:
    engine, separator, path = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("not of the form ENGINE=PATH")
    return engine, path


def absolute(text: str) -> Path:
    return Path(text).expanduser().absolute()


def start(options: argparse.Namespace, gguf: Path) -> list[Contestant]:
    """Those of the contestants that can run here, in the order asked for."""
    pythons = dict(options.python)
    contestants = []
    for name in options.engines:
        engine, _, variant = name.partition(":")
        try:
            folder = hf_folder(gguf, options.cache) if engine in FOLDER_ENGINES else ""
            settings = Settings(
                str(gguf), str(folder), str(options.cache), options.threads, variant
            )
            contestants.append(Contestant(name, pythons.get(engine, sys.executable), settings))
        except (ContestantError, ImportError) as error:
            print(f"{name} is skipped: {error}")
    return contestants


def introduce(contestant: Contestant, tokenizer: Tokenizer) -> None:
    """Show that a contestant speaks sense; this warms it up, too."""
    output = contestant.generate([tokenizer.encode(SENTENCE)], 16)[0]
    print(f"{contestant.name}: {SENTENCE}{tokenizer.decode(output.tokens)!r}")


def run_round(contestants: Sequence[Contestant], workloads: Sequence[str], sizes: Sizes) -> Round:
    """One workload after the other, each by all contestants in turn."""
    round_: Round = {}
    for workload in workloads:
        for contestant in contestants:
            for metric, value in measure(contestant, workload, sizes).items():
                round_.setdefault(metric, {})[contestant.name] = value
    return round_


def measure(contestant: Contestant, workload: str, sizes: Sizes) -> Values:
    """The workload's values, or none if the contestant cannot do it."""
    try:
        return WORKLOADS[workload](contestant, sizes)
    except ContestantError as error:
        print(f"{contestant.name} cannot do {workload}: {error}")
        return {}


def save(report: Report, options: argparse.Namespace) -> None:
    if options.markdown:
        options.markdown.write_text(markdown(report), encoding="utf-8")
    if options.json:
        write_json(report, options.json)
    if options.plot:
        plot(report, options.plot)


if __name__ == "__main__":
    main()
