"""Continue one prompt and print the text as it comes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from phloem.arguments import add_options, read_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from phloem.runtime.config import EngineConfig

    parser.add_argument("prompt", help="the text to continue; - reads standard input")
    parser.add_argument("--chat", action="store_true", help="send the prompt as a user's message")
    add_sampling_arguments(parser)
    add_options(parser, EngineConfig)


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for sampling and constraints, shared by the commands that generate."""
    group = parser.add_argument_group("sampling options")
    group.add_argument("--max-new-tokens", type=int, default=256, metavar="N")
    group.add_argument("--temperature", type=float, default=0.0, metavar="X")
    group.add_argument("--top-p", type=float, default=1.0, metavar="X")
    group.add_argument("--seed", type=int, metavar="N")
    constraint = parser.add_mutually_exclusive_group()
    constraint.add_argument("--json-schema", type=read, metavar="FILE", help="schema file")
    constraint.add_argument("--regex", metavar="TEXT", help="the output must match in full")
    constraint.add_argument("--ebnf", type=read, metavar="FILE", help="grammar file")


def read(path: str) -> str:
    """A file's text, read while the arguments are: before the model is loaded."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from None


SAMPLING = ("max_new_tokens", "temperature", "top_p", "seed", "json_schema", "regex", "ebnf")


def sampling(namespace: argparse.Namespace) -> dict[str, Any]:
    """The sampling fields that the options describe."""
    return {name: getattr(namespace, name) for name in SAMPLING}


def run(namespace: argparse.Namespace) -> int:
    from phloem.runtime.config import EngineConfig
    from phloem.runtime.local import Engine

    text = sys.stdin.read() if namespace.prompt == "-" else namespace.prompt
    config = read_options(namespace, EngineConfig)
    with Engine.from_config(config) as engine:
        prompt = engine.chat_prompt([{"role": "user", "content": text}]) if namespace.chat else text
        for delta in engine.stream(prompt, sampling(namespace)):
            print(delta.text, end="", flush=True)
    print()
    return 0
