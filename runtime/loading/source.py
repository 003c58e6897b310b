"""What a model reads its weights and config from."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from phloem.kernels.blocks import Blocks
from phloem.runtime.loading.gguf import GGUFSource
from phloem.runtime.loading.safetensors import SafetensorsSource
from phloem.runtime.store import ModelFiles


class WeightSource(Protocol):
    """A model's config and tensors, under the names that transformers gives them.

    Attributes:
        config: the content of ``config.json``.
    """

    config: dict[str, Any]

    def names(self) -> set[str]:
        """Names of all tensors, such as ``model.layers.0.self_attn.q_proj.weight``."""

    def get(self, name: str) -> Tensor:
        """One tensor on the CPU, quantised ones as float32, others in the type they are stored in.

        Raises:
            ModelError: there is no tensor ``name``, or it cannot be read.
        """

    def blocks(self, name: str) -> Blocks | None:
        """The matrix ``name`` as it is stored, if that is in quantised blocks."""


def load_source(files: ModelFiles) -> WeightSource:
    """Open the weights of ``files`` without reading them.

    Raises:
        ModelError: the files are damaged, incomplete or of a kind that is not supported.
    """
    return GGUFSource(files.path) if files.kind == "gguf" else SafetensorsSource(files.path)
