"""The compiled library: where it is, what its functions take, which kernels it runs here."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

PATH = Path(os.environ.get("PHLOEM_LIBRARY") or Path(__file__).with_name("libphloem.so"))
"""Where the library is; the variable names another build of it, one with a sanitizer, say."""

FORMS = 4
F32, BF16, I8, I16 = range(FORMS)
"""Forms in which a row of activations is kept; I16 is int8 twice, the second time of the rest."""


class Operand(Structure):
    """A buffer, and the byte of its rows at which a value begins."""

    _fields_ = (("buffer", c_int32), ("column", c_int32))


class ValueForms(Structure):
    """A value's operand in each form, buffer -1 where it is not kept."""

    _fields_ = (("forms", Operand * FORMS),)


class Pages(Structure):
    """See ``Pages`` in src/kernels.h."""

    _fields_ = (
        ("data", c_void_p),
        ("kind", c_int32),
        ("page", c_int64),
        ("heads", c_int64),
        ("size", c_int64),
        ("padded", c_int64),
    )


class Inputs(Structure):
    """See ``Inputs`` in src/program.h."""

    _fields_ = (
        ("tokens", c_int64),
        ("requests", c_int64),
        ("rows", c_int64),
        ("token_ids", c_void_p),
        ("positions", c_void_p),
        ("slots", c_void_p),
        ("query_start", c_void_p),
        ("kv_len", c_void_p),
        ("page_table", c_void_p),
        ("page_table_width", c_int64),
        ("logit_rows", c_void_p),
        ("logits", c_void_p),
        ("vocabulary", c_int64),
    )


class SampleBatch(Structure):
    """See ``SampleBatch`` in src/sampler.h."""

    _fields_ = (
        ("rows", c_int64),
        ("vocabulary", c_int64),
        ("logits", c_void_p),
        ("temperature", c_void_p),
        ("top_p", c_void_p),
        ("min_p", c_void_p),
        ("top_k", c_void_p),
        ("seed", c_void_p),
        ("position", c_void_p),
        ("chosen", c_void_p),
    )


class MaskBatch(Structure):
    """See ``MaskBatch`` in src/sampler.h."""

    _fields_ = (
        ("count", c_int64),
        ("words", c_int64),
        ("bits", c_void_p),
        ("rows", c_void_p),
        ("logits", c_void_p),
        ("vocabulary", c_int64),
    )


_operand, _forms, _pages = POINTER(Operand), POINTER(ValueForms), POINTER(Pages)

SIGNATURES = {
    "error": (c_char_p,),
    "kernels": (c_char_p, c_char_p),
    "engine_new": (c_void_p, c_char_p, c_int32),
    "engine_free": (None, c_void_p),
    "read_bandwidth": (c_double, c_void_p),
    "int8_peak": (c_double, c_void_p),
    "matrix_new": (c_void_p, c_void_p, c_int32, c_int64, c_int64),
    "matrix_free": (None, c_void_p),
    "matrix_bytes": (c_int64, c_void_p),
    "matrix_pack": (None, c_void_p, c_void_p, c_int32, c_void_p, c_int64, c_int64, c_int64),
    "program_new": (c_void_p, c_void_p),
    "program_free": (None, c_void_p),
    "program_buffer": (c_int32, c_void_p, c_int64, c_int32),
    "row_bytes": (c_int64, c_int32, c_int64),
    "page_bytes": (c_int64, c_int32, c_int64, c_int64, c_int64),
    "add_embedding": (None, c_void_p, c_void_p, c_float, _operand),
    "add_norm": (None, c_void_p, _operand, c_int64, c_int64, c_void_p, c_float, _forms),
    "add_add": (None, c_void_p, _operand, _operand, c_int64, _operand),
    "add_convert": (None, c_void_p, _operand, c_int64, _forms),
    "add_linear": (None, c_void_p, c_void_p, c_void_p, c_int32, _operand, _operand, c_int32),
    "add_gate": (None, c_void_p, _operand, c_int64, c_int32, _forms),
    "add_gated_linear": (None, c_void_p, c_void_p, c_void_p, c_int32, _operand, c_int32, _forms),
    "add_rope": (
        None, c_void_p, _operand, _operand, _operand, c_void_p, c_int64, c_int64, _pages, _operand,
    ),
    "add_attention": (
        None, c_void_p, _operand, c_int64, _pages, c_float, c_int64, c_float, _forms,
    ),
    "add_logits": (
        None, c_void_p, _operand, c_int64, c_void_p, c_void_p, c_int32, _operand, c_float,
    ),
    "program_run": (c_int32, c_void_p, POINTER(Inputs)),
    "program_read": (None, c_void_p, _operand, c_int64, c_int64, c_void_p),
    "program_ops": (c_int64, c_void_p),
    "program_op": (c_char_p, c_void_p, c_int64),
    "program_profile": (None, c_void_p, c_int32),
    "program_seconds": (None, c_void_p, POINTER(c_double)),
    "sample": (None, c_void_p, POINTER(SampleBatch)),
    "mask": (None, c_void_p, POINTER(MaskBatch)),
}  # fmt: skip
"""Each function's result, then its arguments; names without their prefix ``phloem_``."""


class Library:
    """The functions of SIGNATURES, as attributes; calls release the interpreter's lock."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for name, (result, *arguments) in SIGNATURES.items():
            function = getattr(library, f"phloem_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> ctypes._NamedFuncPointer:
        raise AttributeError(f"the library has no function {name}")


@cache
def load_library() -> Library | None:
    """The library, or None if it was not built or does not load here."""
    try:
        return Library(PATH)
    except OSError:
        return None


def kernels_name(wanted: str = "auto") -> str | None:
    """The instruction set of that name, or the best one; None if this processor lacks it."""
    library = load_library()
    name: bytes | None = library.kernels(wanted.encode()) if library else None
    return name.decode() if name else None
