from __future__ import annotations

from pathlib import Path

import pytest

from phloem.runtime.bootstrap import LoadedModel, load
from phloem.runtime.config import EngineConfig


@pytest.fixture(scope="session")
def tiny(tiny_model: Path) -> LoadedModel:
    """The tiny model in float32, to assemble cores around."""
    return load(EngineConfig(model=str(tiny_model), dtype="float32"))


@pytest.fixture(scope="session")
def real(default_model: Path) -> LoadedModel:
    """The default model in float32; for tests marked slow."""
    return load(EngineConfig(model=str(default_model), dtype="float32"))
