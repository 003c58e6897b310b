"""Fixtures shared by all tests: the tiny model and the real default one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# In CI a red run must be the change's doing: examples are drawn the same way every time.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny random Llama and its tokenizer."""
    from tiny import write_tiny_model

    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The default model's file, fetched into the store if need be; for tests marked slow."""
    from phloem.runtime.config import DEFAULT_MODEL
    from phloem.runtime.store import resolve

    return resolve(DEFAULT_MODEL).path
