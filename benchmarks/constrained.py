"""JSON schemas under Phloem and other engines: what compiles, what is right, what it costs.

    python benchmarks/constrained.py --schemas DIR [--engines phloem,llguidance] [--limit 200]

DIR holds files of JSON lines, ``{"name", "schema", "valid": [...], "invalid": [...]}``;
``structured/collect.py`` makes such files of the schemas in installed packages. Every instance is
written token by token, as ``json.dumps(ensure_ascii=False)`` spells it and the model's tokenizer
cuts it, with a mask filled before each token. A schema is fully right if each valid instance can
be written so and no invalid one can, and unsound if an invalid one can.

Times are of the processor: the process's for compiling (an engine may use a thread of its own),
the thread's for masks. Each engine has processes of its own, whose memory and time are bounded; an
engine whose package is not there is skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from structured.cases import Case, find
from structured.contestant import Contestant, ContestantError, Result, Terms
from structured.engine import Tokens
from structured.report import markdown
from structured.tally import Tally

from phloem.runtime.store import DEFAULT_MODEL, resolve
from phloem.runtime.text import load_tokenizer

ENGINES = "phloem", "llguidance", "xgrammar", "outlines-core", "lm-format-enforcer"


def main() -> None:
    options = parse()
    cases = list(find(options.schemas, options.limit))
    print(f"{len(cases):,} schemas", file=sys.stderr)
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        read_tokens(options.model).save(tokens)
        for name in options.engines:
            python = dict(options.python).get(name, sys.executable)
            memory = int(options.memory * 2**30)
            terms = Terms(name, python, tokens, options.seconds, memory)
            try:
                tallies[name] = run(terms, cases, options)
            except ContestantError as error:
                print(f"{name} is skipped: {error}")
    report = markdown(tallies)
    print(report)
    if options.markdown:
        options.markdown.write_text(report, encoding="utf-8")
    if options.json:
        plain = {name: tally.plain() for name, tally in tallies.items()}
        options.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schemas", type=Path, required=True, metavar="DIR")
    parser.add_argument("--engines", type=names, default=ENGINES, metavar="NAME,...")
    parser.add_argument("--limit", type=int, metavar="N", help="of each file, spread evenly")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="whose tokenizer is used")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=60, help="for one schema")
    parser.add_argument("--memory", type=float, default=6, help="GiB for a process")
    parser.add_argument(
        "--python", type=interpreter, action="append", default=[], metavar="ENGINE=PATH",
        help="interpreter of an engine, such as xgrammar=/venvs/xgrammar/bin/python",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="the tables' figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument(
        "--outcomes", type=argparse.FileType("w"), metavar="FILE",
        help="a JSON line for each schema and engine",
    )  # fmt: skip
    options = parser.parse_args()
    if not options.schemas.is_dir():
        parser.error(f"--schemas: {options.schemas} is no folder")
    return options


def names(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(ENGINES):
        raise argparse.ArgumentTypeError(f"not known: {', '.join(sorted(unknown))}")
    return chosen


def interpreter(text: str) -> tuple[str, str]:
    engine, separator, path = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("not of the form ENGINE=PATH")
    return engine, path


def read_tokens(model: str) -> Tokens:
    tokenizer = load_tokenizer(resolve(model))
    size = tokenizer.vocab_size
    return Tokens(
        tokenizer.token_bytes_table(size),
        tuple(tokenizer.eos_token_ids),
        frozenset(tokenizer.special_ids),
        tokenizer.to_json(),
    )


def run(terms: Terms, cases: Sequence[Case], options: argparse.Namespace) -> Tally:
    contestant = Contestant(terms, options.workers)
    tally = Tally(contestant.description)
    progress = Progress(terms.name, len(cases))
    try:
        for result in contestant.examine(cases):
            file = str(result.case.path.relative_to(options.schemas))
            tally.add(file, result.outcome)
            if options.outcomes:
                record(options.outcomes, terms.name, file, result)
            progress.show(tally)
    finally:
        contestant.close()
    tally.peak = contestant.peak
    return tally


def record(file: TextIO, engine: str, name: str, result: Result) -> None:
    plain = result.outcome.plain()
    for key in ("fills", "accepts"):
        del plain[key]
    print(json.dumps({"engine": engine, "file": name, **plain}), file=file, flush=True)


class Progress:
    """A line on stderr now and then."""

    def __init__(self, name: str, schemas: int) -> None:
        self._name = name
        self._schemas = schemas
        self._next = time.monotonic()

    def show(self, tally: Tally) -> None:
        total = tally.total
        if time.monotonic() < self._next and total.schemas < self._schemas:
            return
        self._next = time.monotonic() + 5
        print(
            f"{self._name}: {total.schemas:,} of {self._schemas:,}, {total.compiled:,} compiled, "
            f"{total.right:,} right, {total.unsound} unsound",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
