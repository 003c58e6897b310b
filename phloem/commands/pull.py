"""Fetch a model into the store and print where it is."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from phloem.runtime.config import DEFAULT_MODEL

    parser.add_argument(
        "model",
        nargs="?",
        default=DEFAULT_MODEL,
        help="name in the store, folder, .gguf file or hub id (default: %(default)s)",
    )


def run(namespace: argparse.Namespace) -> int:
    from phloem.runtime.store import pull

    print(pull(namespace.model).path)
    return 0
