"""A scripted model for programs to run on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted import ScriptedClient, script, tiny_tokenizer

from phloem.runtime.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def scripted(tokenizer: Tokenizer) -> Callable[..., ScriptedClient]:
    """Make a client from cues and answers: ``scripted({"Q:": " yes"})``."""
    return lambda cues: ScriptedClient(tokenizer, script(cues))
