"""Model definitions on ``phloem.kernels`` ops."""

from phloem.runtime.models.base import Model
from phloem.runtime.models.config import KVGeometry, ModelConfig, RopeConfig
from phloem.runtime.models.families import parse_config
from phloem.runtime.models.registry import load_model

__all__ = ["KVGeometry", "Model", "ModelConfig", "RopeConfig", "load_model", "parse_config"]
