from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Arithmetic, load_arithmetic

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


WAYS: dict[str, dict[str, Any]] = {
    "native float32": {"dtype": "float32"},
    "native bfloat16": {"dtype": "bfloat16"},
    "native int8, int8 cache": {"quantization": "int8", "kv_dtype": "int8"},
    "native int4": {"quantization": "int4"},
    "reference float32": {"dtype": "float32", "ops": "reference"},
}


@pytest.fixture(scope="session", params=list(WAYS))
def tiny_arithmetic(request: pytest.FixtureRequest, tiny_model: Path) -> Arithmetic:
    """The tiny model in each way to compute that promises equal results."""
    return load_arithmetic(tiny_model, WAYS[request.param])


@pytest.fixture(scope="session")
def real_float32(default_model: Path) -> Arithmetic:
    """The default model computed exactly; for tests marked slow."""
    return load_arithmetic(default_model, {"dtype": "float32"})


@pytest.fixture(scope="session", params=[{}, {"dtype": "float32"}, {"kv_dtype": "int8"}], ids=str)
def real_arithmetic(request: pytest.FixtureRequest, default_model: Path) -> Arithmetic:
    """The default model as it runs by default, exactly, and with a cache of int8."""
    return load_arithmetic(default_model, request.param)
