"""Weights of a Hugging Face folder: ``config.json`` and one or several safetensors files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.errors import ModelError
from phloem.runtime.loading.json_file import read_json

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class SafetensorsSource:
    """WeightSource over a folder. Files are mapped; only tensors asked for are read.

    Raises (when built):
        ModelError: the config or index is missing or malformed, a shard is missing, cut short
            or lacks a tensor that the index promises, or the weights are quantised.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.config = _config(folder)
        self._shards: dict[str, Any] = {}
        self._shard_of = self._single() if (folder / SINGLE).is_file() else self._sharded()

    def names(self) -> set[str]:
        return set(self._shard_of)

    def get(self, name: str) -> Tensor:
        """The tensor in its stored type."""
        if name not in self._shard_of:
            raise ModelError(f"{self._folder} has no tensor {name}")
        shard = self._shard_of[name]
        try:
            tensor: Tensor = self._shards[shard].get_tensor(name)
        except SafetensorError as error:
            raise ModelError(f"{self._folder / shard}: tensor {name}: {error}") from error
        return tensor

    def blocks(self, name: str) -> Blocks | None:
        """None: safetensors hold no blocks."""
        return None

    def _single(self) -> dict[str, str]:
        return dict.fromkeys(self._open(SINGLE), SINGLE)

    def _sharded(self) -> dict[str, str]:
        """Tensor name -> shard, as the index says, checked against the shards."""
        shard_of = _weight_map(self._folder)
        held = {shard: self._open(shard) for shard in sorted(set(shard_of.values()))}
        for name, shard in shard_of.items():
            if name not in held[shard]:
                raise ModelError(f"{self._folder / shard} lacks tensor {name}, which {INDEX} lists")
        return shard_of

    def _open(self, shard: str) -> set[str]:
        """Map one file; returns the names of its tensors."""
        path = self._folder / shard
        if not path.is_file():
            raise ModelError(f"{path} is missing; {INDEX} names it")
        try:
            self._shards[shard] = safe_open(path, framework="pt", device="cpu")
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path} is damaged or cut short: {error}") from error
        return set(self._shards[shard].keys())


def _config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    quantization = config.get("quantization_config")
    if quantization:
        method = quantization.get("quant_method") if isinstance(quantization, dict) else None
        raise ModelError(f"{folder} has quantised weights ({method}), which are not supported")
    return config


def _weight_map(folder: Path) -> dict[str, str]:
    if not (folder / INDEX).is_file():
        raise ModelError(f"{folder} has neither {SINGLE} nor {INDEX}")
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{folder / INDEX} has no weight_map")
    for shard in weight_map.values():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise ModelError(f"{folder / INDEX} names the file {shard!r} outside its folder")
    return weight_map
