"""Map the top-level folders to packages below ``phloem``, and build the native kernels.

Everything else is in pyproject.toml. The kernels are one shared library without Python in it:
the same source is compiled once for each instruction set, and the best one is taken at run time.
Without a C++ compiler the package installs without them.
"""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

FOLDERS = ("runtime", "radix_cache", "constrained", "frontend_lang", "kernels")

SOURCE = Path("kernels/native/src")
FLAGS = [
    "-std=c++20",
    "-O3",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wextra",
]
# GCC warns of its own intrinsics, which leave unused lanes undefined on purpose.
KERNEL_FLAGS = ["-fno-exceptions", "-fno-rtti", "-Wno-maybe-uninitialized", "-Wno-uninitialized"]
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"]
VNNI_BF16 = ["-mavx512vnni", "-mavx512bf16", "-DPHLOEM_VNNI", "-DPHLOEM_BF16"]
KERNELS = {
    "avx512_bf16": [*AVX512, *VNNI_BF16, "-DPHLOEM_AVX512"],
    "avx512": [*AVX512, "-DPHLOEM_AVX512"],
    "avx2": [*AVX2, "-DPHLOEM_AVX2"],
    "portable": ["-O2"],
}
X86 = {"x86_64", "AMD64"}


class BuildKernels(build_ext):
    """Compiles ``isa/kernels.cpp`` once for each instruction set, and the rest once."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + ".so"

    def build_extension(self, ext: Extension) -> None:
        sets = KERNELS if platform.machine() in X86 else ["portable"]
        kernels = str(SOURCE / "isa/kernels.cpp")
        jobs = [(kernels, f"isa/{name}", kernel_flags(name)) for name in sets]
        jobs += [(source, "", FLAGS) for source in ext.sources]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            objects = [*threads.map(lambda job: self.compile_one(ext, *job), jobs)]
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(ext.name), target_lang="c++", extra_postargs=["-pthread"]
        )

    def compile_one(self, ext: Extension, source: str, folder: str, flags: list[str]) -> str:
        """The object file of one source."""
        [compiled] = self.compiler.compile(
            [source],
            output_dir=str(Path(self.build_temp) / folder),
            extra_postargs=flags,
            depends=ext.depends,
        )
        return compiled


def kernel_flags(name: str) -> list[str]:
    """Flags to compile the kernels of one instruction set."""
    return [*FLAGS, *KERNEL_FLAGS, f"-DPHLOEM_ISA={name}", *KERNELS[name]]


def mapped(folder: str) -> list[str]:
    """Names of the packages in ``folder``, as seen from ``phloem``."""
    inner = find_packages(folder)
    return [f"phloem.{folder}", *(f"phloem.{folder}.{name}" for name in inner)]


setup(
    packages=[*find_packages(include=["phloem*"]), *(p for f in FOLDERS for p in mapped(f))],
    package_dir={"phloem": "phloem", **{f"phloem.{folder}": folder for folder in FOLDERS}},
    package_data={"phloem": ["py.typed"]},
    ext_modules=[
        Extension(
            "phloem.kernels.native.libphloem",
            sources=sorted(map(str, SOURCE.glob("*.cpp"))),
            depends=sorted(map(str, SOURCE.rglob("*.h"))),
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
