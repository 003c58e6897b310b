"""JSON Schema: admission (what is refused, and where) and the exact rewrites the engine needs."""

from phloem.constrained.json_schema.admission import Admitted, admit
from phloem.constrained.json_schema.locate import locate

__all__ = ["Admitted", "admit", "locate"]
