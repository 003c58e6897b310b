"""Whose KV pages these are: what two engines must have in common to use each other's.

Better one difference too many than one too few: an engine whose fingerprint changed without need
computes its pages again, one that takes pages of another arithmetic answers what it should not.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch

from phloem.kernels.native.backend import NativeOps
from phloem.kernels.native.library import PATH
from phloem.kernels.ops import Ops
from phloem.radix_cache import KVPool
from phloem.runtime.config import EngineConfig

DIGEST_BYTES = 32
SAMPLES, SAMPLE_BYTES = 16, 1 << 16
"""Parts of a weights file that are hashed, evenly spread; the first one holds names and shapes."""

PACKAGE = Path(__file__).parent.parent
CODE = "kernels", "runtime/loading", "runtime/models"
"""Where the code is that makes keys and values of tokens."""


def fingerprint(config: EngineConfig, model_path: str, ops: Ops, kv: KVPool) -> bytes:
    """32 bytes over the model's files, the settings and code that compute, and a page's layout."""
    facts = (
        [file_facts(file) for file in model_files(Path(model_path))],
        [config.dtype, config.quantization, config.cpu_activations, config.context_length],
        arithmetic(ops, kv.device),
        code_digest(),
        kv.page_size,
        [(len(side), tuple(side.shape[2:]), str(side.dtype)) for side in kv.sides],
    )
    return blake2b(msgspec.json.encode(facts), digest_size=DIGEST_BYTES).digest()


def arithmetic(ops: Ops, device: torch.device) -> tuple[object, ...]:
    """The compiled code: kernels for this processor, or torch's."""
    if isinstance(ops, NativeOps):
        built = PATH.stat()
        return ops.name, ops.exact, ops.engine.kernels, built.st_size, built.st_mtime_ns
    capability = torch.backends.cpu.get_cpu_capability()
    return ops.name, device.type, str(torch.__version__), version("transformers"), capability


def code_digest() -> str:
    """Hash of the Python code: between two versions it changes without another number."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for file in sources():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def sources() -> Iterator[Path]:
    for folder in CODE:
        yield from sorted((PACKAGE / folder).rglob("*.py"))


def model_files(path: Path) -> list[Path]:
    """The files that hold weights and their config."""
    if path.is_file():
        return [path]
    return sorted([*path.glob("*.safetensors"), *path.glob("config.json")])


def file_facts(file: Path) -> tuple[str, int, int, str]:
    """Name, size, time of the last change, and a hash of samples of the content.

    The time tells apart what samples may not: weights that were trained on in some layers only.
    """
    about, digest = file.stat(), blake2b(digest_size=DIGEST_BYTES)
    with file.open("rb") as content:
        for sample in range(SAMPLES):
            content.seek(sample * about.st_size // SAMPLES)
            digest.update(content.read(SAMPLE_BYTES))
    return file.name, about.st_size, about.st_mtime_ns, digest.hexdigest()
