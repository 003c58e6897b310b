"""Local files that hold a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from phloem.runtime.errors import ModelError


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on this machine: one GGUF file, or a folder with config, safetensors, tokenizer."""

    kind: Literal["gguf", "safetensors"]
    path: Path


def local_files(path: Path) -> ModelFiles:
    """What ``path`` holds.

    Raises:
        ModelError: it is no GGUF file and no folder of a supported kind.
    """
    if path.is_file():
        return _file(path)
    if not path.is_dir():
        raise ModelError(f"there is no file or folder {path}")
    if any(path.glob("*.safetensors")):
        return ModelFiles("safetensors", path)
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1:
        return ModelFiles("gguf", ggufs[0])
    raise ModelError(_why_not(path, [file.name for file in ggufs]))


def _file(path: Path) -> ModelFiles:
    if path.suffix == ".safetensors":
        raise ModelError(f"{path} is one file of a model; give its folder, {path.parent}")
    if path.suffix != ".gguf":
        raise ModelError(f"{path} is not a .gguf file, nor a folder with safetensors files")
    return ModelFiles("gguf", path)


def _why_not(folder: Path, ggufs: list[str]) -> str:
    if ggufs:
        return f"{folder} holds several GGUF files, give one of them: {', '.join(ggufs)}"
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt*")):
        return f"{folder} holds pickled weights only; convert them to safetensors"
    return f"{folder} holds neither safetensors nor GGUF files"
