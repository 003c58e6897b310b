"""Turn what a user calls a model into local files, fetching them where needed."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from phloem.runtime.errors import ModelError
from phloem.runtime.store import cache, hub
from phloem.runtime.store.catalogue import CATALOGUE
from phloem.runtime.store.files import ModelFiles, local_files

_HUB_ID = re.compile(
    r"(?P<repo>[\w][\w.-]*/[\w][\w.-]*)(?:@(?P<revision>[\w./-]+))?(?::(?P<file>[^:]+\.gguf))?",
    re.ASCII,
)


def resolve(name: str, *, progress: bool = True) -> ModelFiles:
    """Local files of the model ``name``, fetched on first use.

    ``name`` is, in this order: a name of the catalogue, an existing folder or ``.gguf`` file, or
    a hub id ``org/name[@revision][:file.gguf]``. ``progress`` shows a bar on stderr.

    Raises:
        ModelError: the name is unknown, or its files cannot be fetched or are of no use; a
            failed fetch leaves nothing behind that a later call would take for a model.
    """
    return _find(name, progress=progress, verify=False)


def pull(name: str, *, progress: bool = True) -> ModelFiles:
    """Like ``resolve``, but checks a cached catalogue model byte for byte and repairs it."""
    return _find(name, progress=progress, verify=True)


def _find(name: str, *, progress: bool, verify: bool) -> ModelFiles:
    if name in CATALOGUE:
        model = CATALOGUE[name]
        return ModelFiles("gguf", cache.fetch(model, progress=progress, verify=verify))
    path = os.path.expanduser(name)
    if os.path.exists(path):
        return local_files(Path(path))
    hub_id = _HUB_ID.fullmatch(name)
    if hub_id is None or (name.endswith(".gguf") and hub_id["file"] is None):
        raise ModelError(_unknown(name))
    return hub.fetch(hub_id["repo"], hub_id["revision"], hub_id["file"], progress=progress)


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, CATALOGUE, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return (
        f"there is no model {name!r}{hint}. Known names: {', '.join(CATALOGUE)}. Otherwise give a "
        "folder with safetensors, a .gguf file, or a hub id: org/name or org/name:file.gguf"
    )
