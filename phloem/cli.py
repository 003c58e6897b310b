"""The ``phloem`` command. Each subcommand's module is imported only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "serve": "serve a model over HTTP",
    "generate": "continue one prompt and print the text",
    "chat": "talk with a model in the terminal",
    "pull": "fetch a model into the store",
    "bench": "measure throughput and latency of a model on this machine",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the process's exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in COMMANDS:
        overview().parse_args(words or ["--help"])
        return 2
    command = import_module(f"phloem.commands.{words[0]}")
    parser = argparse.ArgumentParser(
        prog=f"phloem {words[0]}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    try:
        return int(command.run(parser.parse_args(words[1:])))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not is_users(error):
            raise
        print(f"phloem {words[0]}: {error}", file=sys.stderr)
        return 1


def overview() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="phloem", description="Structured generation and prefix caching for language models."
    )
    parser.add_argument("--version", action="version", version=version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser


def version() -> str:
    from importlib.metadata import version as installed

    return f"phloem {installed('phloem')}"


def is_users(error: Exception) -> bool:
    """Whether the message alone tells the user what to change."""
    import msgspec

    from phloem.runtime.errors import PhloemError

    return isinstance(error, PhloemError | msgspec.ValidationError | OSError)
