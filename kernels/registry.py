"""Which implementations of the ops there are, and which to take."""

from __future__ import annotations

from phloem.kernels.native.library import kernels_name
from phloem.kernels.ops import Ops
from phloem.kernels.reference.backend import ReferenceOps

NAMES = "native", "reference"


def load_ops(name: str, *, threads: int | None = None, exact: bool = False) -> Ops:
    """The ops of one implementation.

    ``threads`` and ``exact`` are those of NativeOps; the reference computes with torch's threads,
    and is always exact.

    Raises:
        ValueError: there is none of this name, or it does not run here.
    """
    if name not in NAMES:
        raise ValueError(f"ops: {name!r} is not one of {', '.join(NAMES)}")
    if name == "reference":
        return ReferenceOps()
    from phloem.kernels.native.backend import NativeOps

    return NativeOps(threads, exact=exact)


def native_runs() -> bool:
    """Whether the native library was built and has kernels for this processor."""
    return kernels_name() is not None
