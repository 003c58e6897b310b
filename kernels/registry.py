"""Which implementations of the ops there are, and which to take."""

from __future__ import annotations

from collections.abc import Callable

from phloem.kernels.ops import Ops
from phloem.kernels.reference.backend import ReferenceOps

IMPLEMENTATIONS: dict[str, Callable[[], Ops]] = {"reference": ReferenceOps}


def load_ops(name: str = "auto") -> Ops:
    """The ops of one implementation; "auto" takes the quickest that runs here.

    Raises:
        ValueError: there is none of this name.
    """
    if name == "auto":
        name = "reference"
    if name not in IMPLEMENTATIONS:
        raise ValueError(f"ops: {name!r} is not auto or one of {', '.join(IMPLEMENTATIONS)}")
    return IMPLEMENTATIONS[name]()
