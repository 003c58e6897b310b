"""Talk with a model in the terminal. An empty line or Ctrl-D ends the conversation."""

from __future__ import annotations

import argparse

from phloem.arguments import add_options, read_options
from phloem.commands.generate import add_sampling_arguments, sampling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from phloem.runtime.config import EngineConfig

    parser.add_argument("--system", help="the system message")
    add_sampling_arguments(parser)
    add_options(parser, EngineConfig)


def run(namespace: argparse.Namespace) -> int:
    from phloem.runtime.config import EngineConfig
    from phloem.runtime.local import Engine

    messages = [{"role": "system", "content": namespace.system}] if namespace.system else []
    with Engine.from_config(read_options(namespace, EngineConfig)) as engine:
        while (line := ask()) is not None:
            messages.append({"role": "user", "content": line})
            reply = ""
            for delta in engine.stream(engine.chat_prompt(messages), sampling(namespace)):
                print(delta.text, end="", flush=True)
                reply += delta.text
            print()
            messages.append({"role": "assistant", "content": reply})
    return 0


def ask() -> str | None:
    """The user's next line; None at the end."""
    try:
        return input("> ").strip() or None
    except EOFError:
        print()
        return None
