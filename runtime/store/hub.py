"""Fetch a model from the Hugging Face hub into that library's own cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
from tqdm import tqdm

from phloem.runtime.errors import ModelError
from phloem.runtime.store.files import ModelFiles, local_files

NEEDED = ["*.json", "*.safetensors", "*.model", "*.jinja", "merges.txt", "vocab.txt"]
NOT_NEEDED = ["*/*", "consolidated*.safetensors"]
"""Subfolders hold other formats; ``consolidated`` files repeat the weights under other names."""


def fetch(repo: str, revision: str | None, file: str | None, *, progress: bool) -> ModelFiles:
    """The files of ``repo`` at ``revision``; with ``file``, that GGUF file alone.

    Raises:
        ModelError: the hub cannot be reached and its cache lacks the model; the repository,
            revision or file does not exist; the disk is full; or the repository holds no
            weights that can be used.
    """
    bar = tqdm if progress else _NoBar
    try:
        if file is not None:
            path = huggingface_hub.hf_hub_download(repo, file, revision=revision, tqdm_class=bar)
        else:
            path = huggingface_hub.snapshot_download(
                repo,
                revision=revision,
                allow_patterns=NEEDED,
                ignore_patterns=NOT_NEEDED,
                tqdm_class=bar,
            )
    except Exception as error:  # the library's errors have no common base
        raise ModelError(f"could not fetch {repo} from the hub: {error}") from error
    return _checked(repo, Path(path))


def _checked(repo: str, path: Path) -> ModelFiles:
    try:
        return local_files(path)
    except ModelError as error:
        raise ModelError(
            f"{repo} cannot be used as it is: {error}; "
            f"for one of its GGUF files, if it has any, write {repo}:file.gguf"
        ) from error


class _NoBar(tqdm):  # type: ignore[type-arg]  # generic in the stubs only
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "disable": True})
