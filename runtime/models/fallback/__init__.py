"""Any causal decoder that transformers knows, with our paged attention inside."""

from phloem.runtime.models.fallback.load import load_transformers_model

__all__ = ["load_transformers_model"]
