"""From a checkpoint to the model that runs it."""

from __future__ import annotations

from dataclasses import replace

import torch

from phloem.kernels.ops import Ops
from phloem.runtime.loading.source import WeightSource
from phloem.runtime.models.base import Model
from phloem.runtime.models.decoder import load_decoder
from phloem.runtime.models.families import is_known, parse_config
from phloem.runtime.models.weights import Weights


def load_model(
    source: WeightSource,
    ops: Ops,
    dtype: torch.dtype,
    device: torch.device,
    context_length: int | None = None,
) -> Model:
    """The model of ``source``: its family's definition here, or transformers' own.

    ``context_length`` is the longest context that will be asked for, if it is less than the
    model's: rotations may be chosen by it.

    Raises:
        ModelError: the architecture or a part of its config is not supported, or a tensor is
            missing, mis-shaped or unknown.
    """
    if is_known(source.config):
        config = parse_config(source.config)
        served = min(config.context_length, context_length or config.context_length)
        config = replace(config, context_length=served)
        return load_decoder(Weights(source, ops, dtype, device), config)
    # transformers takes seconds to import and is needed here alone.
    from phloem.runtime.models.fallback import load_transformers_model

    return load_transformers_model(source, ops, dtype, device)
