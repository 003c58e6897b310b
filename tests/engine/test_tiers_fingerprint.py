"""Whose pages they are: what changes a model's KV changes the fingerprint."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from harness import make_core

from phloem.runtime.bootstrap import LoadedModel, load
from phloem.runtime.config import EngineConfig
from phloem.runtime.fingerprint import code_digest, file_facts, fingerprint, sources


def identity(loaded: LoadedModel, **options: object) -> bytes:
    config = EngineConfig(model=loaded.path, **options)  # type: ignore[arg-type]
    kv = make_core(loaded, **options).executor.kv
    return fingerprint(config, loaded.path, loaded.ops, kv)


def test_the_same_engine_has_the_same_fingerprint(tiny: LoadedModel) -> None:
    assert identity(tiny) == identity(tiny, kv_tokens=128, max_running=3, schedule_policy="fcfs")


@pytest.mark.parametrize(
    "option",
    [
        {"dtype": "bfloat16"},
        {"kv_dtype": "bfloat16"},
        {"kv_dtype": "int8"},
        {"page_size": 8},
        {"context_length": 100},
        {"quantization": "int8"},
        {"cpu_activations": "float32"},
    ],
    ids=str,
)
def test_settings_that_change_a_page_count(tiny: LoadedModel, option: dict[str, object]) -> None:
    assert identity(tiny, **option) != identity(tiny)


def test_native_pages_are_not_those_of_the_reference(tiny: LoadedModel) -> None:
    other = load(EngineConfig(model=tiny.path, dtype="float32", ops="reference"))
    assert identity(other) != identity(tiny)


def test_changed_code_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"decoder.py", "quantize.py", "backend.py"} <= {file.name for file in sources()}
    code = tmp_path / "runtime" / "models" / "decoder.py"
    code.parent.mkdir(parents=True)
    monkeypatch.setattr("phloem.runtime.fingerprint.PACKAGE", tmp_path)
    digests = set()
    for text in ("x = 1", "x = 2"):
        code.write_text(text)
        digests.add(code_digest())
    assert len(digests) == 2


@pytest.mark.parametrize("change", ["weights", "config", "time"])
def test_a_model_that_changed_in_place_is_another(
    tiny: LoadedModel, tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny.path, folder)
    loaded = load(EngineConfig(model=str(folder), dtype="float32"))
    before = identity(loaded)
    weights, config = folder / "model.safetensors", folder / "config.json"
    if change == "weights":
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        rewrite(weights, bytes(data))
    elif change == "config":
        rewrite(config, config.read_bytes().replace(b"512", b"511"))
    else:
        os.utime(weights, (1, 1))
    assert identity(loaded) != before


def rewrite(file: Path, data: bytes) -> None:
    """Change the content and keep the times."""
    about = file.stat()
    file.write_bytes(data)
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_a_model_that_was_only_moved_is_the_same(tmp_path: Path) -> None:
    file, moved = tmp_path / "a.gguf", tmp_path / "elsewhere"
    file.write_bytes(b"weights")
    moved.mkdir()
    before = file_facts(file)
    shutil.move(file, moved / "a.gguf")
    assert file_facts(moved / "a.gguf") == before
