"""Folders with one or several safetensors files, whole and damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.source import load_source
from phloem.runtime.store import ModelFiles

NORM = "model.norm.weight"


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    return LlamaForCausalLM(config).bfloat16()


@pytest.fixture(scope="module")
def saved(model: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {"single": "1GB", "sharded": "20KB"}
    root = tmp_path_factory.mktemp("saved")
    for name, shard in folders.items():
        model.save_pretrained(root / name, max_shard_size=shard)
    return {name: root / name for name in folders}


@pytest.fixture
def sharded(saved: dict[str, Path], tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return shutil.copytree(saved["sharded"], tmp_path / "sharded")


def opened(folder: Path) -> Any:
    return load_source(ModelFiles("safetensors", folder))


def first_shard(folder: Path) -> Path:
    return sorted(folder.glob("model-*.safetensors"))[0]


@pytest.mark.parametrize("layout", ["single", "sharded"])
def test_tensors_and_config_are_those_saved(
    layout: str, model: LlamaForCausalLM, saved: dict[str, Path]
) -> None:
    source = opened(saved[layout])
    assert source.config["model_type"] == "llama" and source.config["hidden_size"] == 32
    expected = model.state_dict()
    assert source.names() == set(expected)
    for name, tensor in expected.items():
        assert source.get(name).dtype == torch.bfloat16
        assert torch.equal(source.get(name), tensor)


def test_a_tensor_that_is_not_there_is_named(saved: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match=r"no tensor model\.layers\.7\.x"):
        opened(saved["single"]).get("model.layers.7.x")


def test_a_missing_shard_is_named(sharded: Path) -> None:
    shard = first_shard(sharded)
    shard.unlink()
    with pytest.raises(ModelError, match=f"{shard.name} is missing"):
        opened(sharded)


def test_a_tensor_missing_in_its_shard_is_named(sharded: Path) -> None:
    index = sharded / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    other = next(s for s in content["weight_map"].values() if s != content["weight_map"][NORM])
    content["weight_map"][NORM] = other
    index.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=rf"{other} lacks tensor model\.norm\.weight"):
        opened(sharded)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_shard_cut_short_is_named(keep: int, sharded: Path) -> None:
    shard = first_shard(sharded)
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(ModelError, match=f"{shard.name} is damaged or cut short"):
        opened(sharded)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", "{", "not readable JSON"),
        ("config.json", "[]", "no JSON object"),
        ("config.json", '{"quantization_config": {"quant_method": "gptq"}}', "gptq"),
        ("model.safetensors.index.json", None, "neither model.safetensors nor"),
        ("model.safetensors.index.json", '{"weight_map": {}}', "no weight_map"),
        ("model.safetensors.index.json", '{"weight_map": {"a": "../b"}}', "outside its folder"),
        ("model.safetensors.index.json", '{"weight_map": {"a": 1}}', "outside its folder"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    file: str, content: str | None, message: str, sharded: Path
) -> None:
    (sharded / file).unlink()
    if content is not None:
        (sharded / file).write_text(content)
    with pytest.raises(ModelError, match=message):
        opened(sharded)
