"""Serve a model over HTTP: SGLang's /generate, OpenAI's completions and chat, metrics."""

from __future__ import annotations

import argparse

from phloem.arguments import add_options, read_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from phloem.runtime.config import EngineConfig
    from phloem.runtime.server.settings import ServerSettings

    add_options(parser, ServerSettings)
    add_options(parser, EngineConfig)


def run(namespace: argparse.Namespace) -> int:
    from phloem.runtime.config import EngineConfig
    from phloem.runtime.remote import remote_client
    from phloem.runtime.server import serve
    from phloem.runtime.server.settings import ServerSettings

    config = read_options(namespace, EngineConfig)
    settings = read_options(namespace, ServerSettings)
    return serve(lambda: remote_client(config), settings)
